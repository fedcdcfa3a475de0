// SPDX-License-Identifier: Apache-2.0
#include "manual_text.hpp"

namespace triax::reference {

const std::vector<ManualText>& manual_texts() {
  static const std::vector<ManualText> texts = {
      {"triax",
       {"A run is one TOML file. It names the plugins of the run (communicator, scheduler, kernel set, model and "
        "optimizer), the sizes of the pipeline-, tensor- and data-parallel groups, the data and the training loop.",
        "All errors of a run are reported before it starts, with file, line and column. There is no fallback: a run "
        "uses the plugins that it names, or stops with an error."},
       {{"Check a run, and print the memory that each rank needs:", "triax check run.toml"},
        {"Train, with another number of steps:", "triax train run.toml --set train.steps=100"},
        {"List the options of an optimizer:", "triax plugins describe optim-adamw"}}},
      {"triax train",
       {"triax train starts the ranks as processes or threads on this machine. torchrun, Open MPI or Slurm can start "
        "them instead. The result is one line on standard output. Metrics, logs and the resolved run are in the "
        "folder run.dir. The default is runs/NAME for NAME.toml.",
        "SIGINT, SIGTERM, SIGHUP and SIGUSR1 stop all ranks after the same step, with a checkpoint in the folder of "
        "the run. The same command continues the run; --fresh starts again from step 0. --max-restarts restarts the "
        "run from its last checkpoint after a rank or the launcher fails or is lost."},
       {{"Train on this machine:", "triax train run.toml"},
        {"Train with another optimizer and learning rate:",
         "triax train run.toml --set optimizer.plugin=optim-sgd --set optimizer.lr=0.1"},
        {"Start one rank per task of a Slurm job:", "srun --mpi=none triax train run.toml"}}},
      {"triax evaluate",
       {"Computes the loss of a checkpoint on the token files of data.validation or --data. Ranks are started as for "
        "triax train. Any layout can be used. No file is written.",
        "With the same eval.batches, the loss equals the one that training reports after that step. Without "
        "eval.batches, each sample is used once."},
       {{"Evaluate the newest checkpoint of a run:", "triax evaluate run.toml"},
        {"Evaluate a checkpoint on other token files:",
         "triax evaluate run.toml --checkpoint runs/run/checkpoints/step-00000200 --data data/other"}}},
      {"triax generate",
       {"Continues a text with the weights of a checkpoint, and prints the new text as it is generated. Each new "
        "token is the most probable one, or is sampled with --temperature. Without a prompt, on a terminal, each line "
        "is a prompt.",
        "The model, its precision and the kernel set are read from the checkpoint's manifest; --set changes them. "
        "With parallel.tensor or parallel.pipeline above 1, the ranks are threads of this process. No file is "
        "written."},
       {{"Continue a text with the newest checkpoint of a run:", "triax generate run.toml --prompt 'Once upon a time'"},
        {"Sample three texts:", "triax generate run.toml --prompt Once --temperature 0.8 --top-p 0.9 --samples 3"},
        {"Read the prompt from a pipe:", "echo Once | triax generate run.toml - --json"}}},
      {"triax compare",
       {"Trains two configurations that differ in any keys, alternately on this machine. Prints whether a step of B "
        "is faster than a step of A, with a confidence interval. Also prints where the time of a step goes, and "
        "whether both configurations compute the same numbers. The folder of the comparison contains compare.json and "
        "both runs."},
       {{"Compare two communicators:", "triax compare run.toml --a comm.plugin=comm-ucx --b comm.plugin=comm-mpi"},
        {"Compare two schedules, and write a page with plots:",
         "triax compare run.toml --b schedule.plugin=sched-zb-h1 --html compare.html"}}},
      {"triax report",
       {"Reads the folders of runs, including failed runs and runs in progress. Prints steps, losses, speed, traffic "
        "and memory of each run, and the keys in which the runs differ. No plugin is loaded, unless --html shows the "
        "simulated step beside a recorded one. Missing or damaged files are reported as notes."},
       {{"Summarize two runs:", "triax report runs/tiny runs/mine"},
        {"Write a page with plots:", "triax report runs/tiny --html tiny.html"}}},
      {"triax check",
       {"Prints every value with its origin, the layout, and the memory of each rank. Reports all errors in keys and "
        "data files first. If there are none, reports all errors of the layout and the plugins. Nothing is trained, "
        "and no file is written."},
       {{"Check a run:", "triax check run.toml"},
        {"Check a run for GPUs that this machine does not have:", "triax check run.toml --no-device --memory 80GiB"}}},
      {"triax fit",
       {"Plans the run with and without sequence parallelism, ZeRO and recomputation, and for each combination, "
        "prints the largest microbatch size that fits. If the run does not fit as it is written, prints the keys to "
        "set. This machine does not need the devices, the memory, the data or the GPU plugins of the run.",
        "The exit status is 1 if nothing fits."},
       {{"Fit a run into GPUs of 80 GiB:", "triax fit run.toml --memory 80GiB"}}},
      {"triax plan",
       {"Finds the layout, schedule, microbatch, recomputation and sharding under which a run trains fastest on a "
        "cluster. It needs no devices: it dry-runs the layers and estimates the time of every operation and "
        "collective. Prints the best plans, and the first plan as TOML. Ctrl-C prints the best plans so far. "
        "--predict estimates the step time of each GPT run in a CSV file instead. --calibrate measures this machine "
        "with the plugins of a run, and writes a cluster file. docs/planning.md describes cluster files, CSV files "
        "and the accuracy of predictions.",
        "The exit status is 1 if no plan fits."},
       {{"Find the fastest layout on 1536 GPUs:", "triax plan run.toml --cluster clusters/a100-dgx.toml --gpus 1536"},
        {"Predict the runs of a CSV file:", "triax plan --cluster clusters/a100-dgx.toml --predict runs.csv"},
        {"Measure this machine:", "triax plan run.toml --calibrate here.toml"}}},
      {"triax checkpoint",
       {"A checkpoint is a folder step-N of a run, or a folder that triax checkpoint average wrote. A run's folder or "
        "TOML file stands for its newest checkpoint.",
        "Tensors are read in blocks, so memory use does not depend on the model size. Files and folders are written "
        "under a temporary name, and renamed when complete.",
        "The exit status of triax checkpoint diff is 0 if the checkpoints are equal, 1 if they differ, and 2 if they "
        "cannot be compared."},
       {{"List the checkpoints of a run, and describe the newest:", "triax checkpoint list run.toml"},
        {"", "triax checkpoint show run.toml"},
        {"Write the weights as one file in bf16:",
         "triax checkpoint convert run.toml weights.safetensors --dtype bf16"},
        {"Average the newest three checkpoints, and start a run from the result:",
         "triax checkpoint average mean --last 3 run.toml"},
        {"", "triax train other.toml --set checkpoint.from=mean --set checkpoint.load=weights"}}},
      {"triax import",
       {"Writes a checkpoint with the weights of a model that Hugging Face's transformers has saved, and the TOML of "
        "a run that starts from it. The model plugin maps each key of config.json to an option, and each parameter to "
        "tensors.",
        "Weights are read from safetensors files only. A key or a tensor that the model plugin does not support is "
        "refused, and nothing is written."},
       {{"Import a model, and train it further:",
         "triax import hf gpt2 --output gpt2.checkpoint --run gpt2.toml --data data/mine"},
        {"", "triax train gpt2.toml"}}},
      {"triax export",
       {"Writes the weights of a checkpoint as a folder that AutoModelForCausalLM.from_pretrained() loads, with the "
        "tokenizer of the training data or of the imported model. The folder is written under a temporary name, and "
        "renamed when complete."},
       {{"Export the newest checkpoint of a run in bf16:", "triax export hf run.toml my-model --dtype bf16"}}},
      {"triax schedule",
       {"Shows the schedule of a run, of a scheduler for a given shape, or from a CSV file. The schedule is verified "
        "over all ranks before it is shown."},
       {{"Draw the schedule of a run as a picture:", "triax schedule run.toml --format svg --output schedule.svg"},
        {"Draw the schedule of a scheduler for a shape:",
         "triax schedule --scheduler sched-interleaved --pipeline 4 --microbatches 8 --chunks 2"}}},
      {"triax simulate",
       {"Give the pass times for one microbatch on one stage. Prints the step time, the bubble, and the largest "
        "number of microbatch chunks in flight on each rank."},
       {{"Predict the time of a step:",
         "triax simulate run.toml --forward-ms 10 --input-ms 10 --weight-ms 10 --link-ms 1"}}},
      {"triax plugins",
       {"Plugins are shared libraries. They are searched for in the folders of --path, then in TRIAX_PLUGIN_PATH, "
        "then among the installed plugins.",
        "triax plugins new creates a plugin from a template: a folder with a source file that builds and loads, a run "
        "that uses it, and a test. Its README describes the next steps.",
        "triax plugins doctor makes every check that a plugin must pass, and continues after the first problem. Its "
        "exit status is 0 if the plugin is healthy, 1 if it has a problem or was not found, and 2 if the command line "
        "is invalid."},
       {{"List all plugins:", "triax plugins list"},
        {"Describe a plugin, with its options:", "triax plugins describe sched-1f1b"},
        {"Check a plugin against the contract of its interface:", "triax plugins test ./comm-mine.so"},
        {"Explain why a plugin does not load:", "triax plugins doctor build/sched-mine.so"},
        {"Write the folder sched-mine:", "triax plugins new scheduler sched-mine"}}},
      {"triax data",
       {"Token files have the format of Megatron's indexed dataset: PREFIX.bin and PREFIX.idx. PREFIX.json names the "
        "tokenizer."},
       {{"Prepare two text files, with bytes as tokens:",
         "triax data prepare --input a.txt b.txt --output data/mine --tokenizer byte"},
        {"Train a tokenizer, and use it:",
         "triax data train-tokenizer --input a.txt --vocab 8192 --output tokenizer.json"},
        {"", "triax data prepare --input a.txt --output data/mine --tokenizer tokenizer.json"}}},
      {"triax bench",
       {"Measures a communicator or a kernel set without a run. With --vs or --set-b, two sides are measured "
        "alternately, in rounds A B B A and B A A B. The ratio of their times has a confidence interval of 95 %.",
        "Results are checked before they are timed. Results of a communicator are checked again after timing. A wrong "
        "result ends the measurement with exit status 1."},
       {{"Measure a communicator between 4 processes:", "triax bench comm --plugin comm-ucx --ranks 4"},
        {"Compare two communicators, and two values of an option:",
         "triax bench comm --plugin comm-ucx --vs comm-mpi --op all_gather --sizes 64K:4M"},
        {"", "triax bench comm --plugin comm-ucx --set-b comm.rndv_threshold=64K"},
        {"Measure a kernel set at the shapes of a run:", "triax bench kernels run.toml --plugin kernels-cpu"}}},
  };
  return texts;
}

const char* exit_status_section() {
  return R"(.SH EXIT STATUS
.TP
.B 0
Success: a check found no errors, or a run trained and recorded everything.
.TP
.B 1
The subcommand ran and failed, or records of a run are missing.
.TP
.B 2
The command was refused before it started anything.
.TP
.B 75
A run was stopped and its last step is saved. The same command continues it.
.TP
.B 128 + \fIsignal\fR
The command was ended by a signal.
)";
}

const char* environment_section() {
  return R"(.SH ENVIRONMENT
.TP
.B TRIAX_PLUGIN_PATH
Folders, separated by colons, that are searched for plugins before the installed ones.
.TP
.B TRIAX_JOB_TOKEN
Shared secret of all processes of a job.
.TP
.B NO_COLOR
If it is not empty, the output has no colours.
.PP
In a job started by torchrun, Open MPI or Slurm, each process reads its rank and the world size from the launcher's
environment variables.
.SH FILES
Paths are relative to the installation prefix.
.TP
.I share/triax/examples
TOML files of runs.
.TP
.I share/doc/triax
The documentation: all keys of a run, schedules, launching, data.
.TP
.I lib/triax/plugins
The installed plugins.
)";
}

} // namespace triax::reference
