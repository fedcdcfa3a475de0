// SPDX-License-Identifier: Apache-2.0
// triax train with several ranks, as users run it: same losses as one rank, one error message, exit statuses.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>

#include "launch/thread_run.hpp"

namespace triax::test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

using TrainVerb = ThreadRun;

TEST_F(TrainVerb, TrainsFourAndEightRanksToTheResultOfOne) {
  const Outcome four = train("", "2>err.txt");
  const std::string output = read_file(work_ / "err.txt");
  EXPECT_EQ(four.status, 0) << output;
  EXPECT_THAT(four.text, MatchesRegex("trained 10 steps: loss [^\n]*metrics in run/metrics.jsonl\n"));
  EXPECT_THAT(output,
              HasSubstr("pipeline 1 x tensor 2 x data 2; model-gpt, kernels-reference, optim-adamw, sched-gpipe, "
                        "comm-local; 4 ranks as threads of this process, "));
  EXPECT_THAT(output, Not(HasSubstr("rank 1: ")));
  for (const char* log : {"run/rank-0.log", "run/rank-1.log", "run/rank-2.log", "run/rank-3.log"})
    EXPECT_TRUE(std::filesystem::exists(work_ / log)) << log;

  EXPECT_EQ(train("--set parallel.data=1 --set parallel.tensor=1 --set run.dir=one").status, 0);
  EXPECT_EQ(train("--set parallel.pipeline=2 --set run.dir=eight").status, 0);
  const std::vector<Json> of_four = records(work_ / "run/metrics.jsonl"), of_one = records(work_ / "one/metrics.jsonl"),
                          of_eight = records(work_ / "eight/metrics.jsonl");
  ASSERT_EQ(of_four.size(), 10u);
  ASSERT_EQ(of_one.size(), 10u);
  ASSERT_EQ(of_eight.size(), 10u);
  for (std::size_t step = 0; step < 10; ++step) {
    EXPECT_NEAR(of_four[step]["loss"].get<double>(), of_one[step]["loss"].get<double>(), 1e-5) << step;
    EXPECT_NEAR(of_four[step]["grad_norm"].get<double>(), of_one[step]["grad_norm"].get<double>(), 1e-4) << step;
    EXPECT_EQ(of_eight[step]["loss"], of_four[step]["loss"]) << step; // the pipeline size changes no bit
    EXPECT_EQ(of_eight[step]["grad_norm"], of_four[step]["grad_norm"]) << step;
  }
  EXPECT_NEAR(of_four[9]["eval_loss"].get<double>(), of_one[9]["eval_loss"].get<double>(), 1e-5);
  EXPECT_EQ(of_four[3]["comm"]["data"]["plugin"], "comm-local");
  EXPECT_GT(of_four[3]["comm"]["tensor"]["bytes_out"].get<int>(), 0);
  EXPECT_GT(of_eight[3]["comm"]["pipeline"]["bytes_out"].get<int>(), 0);
  EXPECT_TRUE(of_one[3]["comm"].empty());
}

TEST_F(TrainVerb, InFp16SkippedStepsAreReportedAndCounted) {
  const Outcome four = train(
      "--set kernels.plugin=kernels-cpu --set train.precision=fp16 --set loss_scale.initial=67108864 "
      "--set loss_scale.hysteresis=1 --set train.steps=20",
      "2>err.txt");
  const std::string output = read_file(work_ / "err.txt");
  EXPECT_EQ(four.status, 0) << output;
  int skipped = 0;
  for (const Json& record : records(work_ / "run/metrics.jsonl")) skipped += record["skipped"].get<bool>() ? 1 : 0;
  EXPECT_GT(skipped, 2);
  EXPECT_LT(skipped, 20);
  EXPECT_THAT(four.text,
              testing::StartsWith("trained 20 steps, " + std::to_string(skipped) + " of them skipped: loss "));
  EXPECT_THAT(output, HasSubstr(" info rank 0: step 1 is skipped: the gradient of "));
  EXPECT_THAT(output, HasSubstr("at loss scale 67108864; the next has 33554432\n"));
  EXPECT_THAT(output, HasSubstr("  " + std::to_string(skipped) + " skipped  "));
  EXPECT_THAT(output, Not(HasSubstr("rank 1: "))); // only rank 0 prints it
  EXPECT_THAT(read_file(work_ / "run/rank-1.log"), HasSubstr("step 1 is skipped: "));
}

TEST_F(TrainVerb, AFileThatMayNotGrowHoldsWholeLinesAndDoesNotEndTheRun) {
  const std::string command =
      "cd '" + work_.path().string() +
      "' && ulimit -f 20 && exec '" TRIAX_BINARY_DIR
      "/bin/triax' train run.toml --set train.steps=80 --set log.level=debug >out.txt 2>err.txt";
  const int status = std::system(command.c_str()); // NOLINT(cert-env33-c): ulimit needs a shell
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  const std::string output = read_file(work_ / "err.txt");
  EXPECT_THAT(output, HasSubstr("metrics.jsonl: the record of step "));
  EXPECT_THAT(output, HasSubstr(" cannot be written: File too large\n"));
  EXPECT_THAT(output, Not(HasSubstr("LOG ERROR")));
  const std::size_t written = records(work_ / "run/metrics.jsonl").size(); // each line is valid JSON
  EXPECT_GT(written, 0u);
  EXPECT_LT(written, 80u);
  EXPECT_THAT(read_file(work_ / "out.txt"),
              MatchesRegex("trained 80 steps: [^\n]*metrics in run/metrics.jsonl; missing: " +
                           std::to_string(80 - written) + " of 80 records[^\n]*\n"));
}

TEST_F(TrainVerb, RecordsAndLogsOnAFullDiskAreReportedOnceAndMakeTheExitStatus1) {
  std::filesystem::create_directory(work_ / "run");
  std::filesystem::create_symlink("/dev/full", work_ / "run/rank-0.log");
  const Outcome full = train("--set log.metrics=/dev/full --set train.steps=3");
  EXPECT_EQ(full.status, 1);
  const std::string on_log =
      "log " + std::filesystem::canonical(work_.path()).string() + "/run/rank-0.log: a line cannot be written: ";
  for (const std::string& once :
       {std::string("/dev/full: the record of step 1 cannot be written: No space left"), on_log}) {
    const std::size_t first = full.text.find(once);
    ASSERT_NE(first, std::string::npos) << full.text;
    EXPECT_EQ(full.text.find(once, first + 1), std::string::npos) << full.text;
  }
  EXPECT_THAT(full.text, Not(HasSubstr("LOG ERROR")));
  EXPECT_THAT(full.text, HasSubstr("no metrics; missing: 3 of 3 records, "));
}

/// The printed command works in a shell for any file names, and no name controls the terminal.
TEST_F(TrainVerb, PrintsANextCommandThatWorksForAnyFileName) {
  std::filesystem::copy(work_ / "run.toml", work_ / "-x.toml");
  const std::string odd = "odd\x1b[2J'\n  name";
  write_file(work_ / "set.sh", "exec '" TRIAX_BINARY_DIR
                               "/bin/triax' train --set train.steps=1 --set eval.every=0 --set "
                               "run.dir=\"$(cat name)\" -- -x.toml\n");
  write_file(work_ / "name", odd);
  const auto shell = [this](const std::string& command) {
    const std::string whole =
        "cd '" + work_.path().string() + "' && unset TRIAX_PLUGIN_PATH && " + command + " >all.txt 2>&1";
    return std::system(whole.c_str()); // NOLINT(cert-env33-c): the test is about a shell command
  };
  ASSERT_EQ(shell("bash set.sh"), 0) << read_file(work_ / "all.txt");
  const std::string output = read_file(work_ / "all.txt");
  EXPECT_THAT(output, Not(HasSubstr("\x1b")));
  EXPECT_THAT(output, HasSubstr("metrics in odd\\u001B[2J'\\u000A  name/metrics.jsonl\n"));
  std::filesystem::copy(work_ / "run.toml", work_ / (odd + ".toml"));
  write_file(work_ / "check.sh", "exec '" TRIAX_BINARY_DIR "/bin/triax' check \"$(cat name).toml\"\n");
  ASSERT_EQ(shell("bash check.sh"), 0) << read_file(work_ / "all.txt");
  EXPECT_THAT(read_file(work_ / "all.txt"), Not(HasSubstr("\x1b")));
  EXPECT_THAT(read_file(work_ / "all.txt"), testing::EndsWith("\nodd\\u001B[2J'\\u000A  name.toml: ready to train\n"));
  const std::string begin = "next: to train longer, from this step: ";
  const std::size_t at = output.find(begin);
  ASSERT_NE(at, std::string::npos) << output;
  const std::string line = output.substr(at + begin.size(), output.find('\n', at) - at - begin.size());
  EXPECT_THAT(
      line,
      testing::EndsWith(
          " --set $'run.dir=odd\\033[2J\\'\\012  name' --set train.steps=2 --set checkpoint.resume=auto -- -x.toml"));
  write_file(work_ / "next.sh", line + "\n");
  ASSERT_EQ(shell("bash next.sh"), 0) << read_file(work_ / "all.txt");
  EXPECT_EQ(records(work_ / (odd + "/metrics.jsonl")).size(), 2u);
}

TEST_F(TrainVerb, ReportsTheResultAsOneJsonObject) {
  const Outcome trained = train("--json --set train.steps=2", "2>/dev/null");
  EXPECT_EQ(trained.status, 0);
  const Json result = Json::parse(trained.text);
  const std::vector<Json> all = records(work_ / "run/metrics.jsonl");
  EXPECT_EQ(result["file"], "run.toml");
  EXPECT_EQ(result["outcome"], "trained");
  EXPECT_EQ(result["exit_status"], 0);
  EXPECT_EQ(result["signal"], nullptr);
  EXPECT_EQ(result["folder"], std::filesystem::canonical(work_ / "run").string());
  EXPECT_EQ(result["metrics"], std::filesystem::canonical(work_ / "run/metrics.jsonl").string());
  EXPECT_EQ(result["steps"], 2);
  EXPECT_EQ(result["skipped"], 0);
  EXPECT_EQ(result["first_loss"], all.front()["loss"]);
  EXPECT_EQ(result["last_loss"], all.back()["loss"]);
  EXPECT_EQ(result["eval_loss"], all.back()["eval_loss"]);
  EXPECT_GT(result["tokens_per_s"].get<double>(), 0);
  EXPECT_EQ(result["records"], 2);
  EXPECT_EQ(result["missing"],
            Json({{"records", 0}, {"log_lines", 0}, {"timelines", 0}, {"checkpoints", 0}, {"events", 0}}));
  EXPECT_EQ(result["last_step"], 2);
  EXPECT_EQ(result["checkpoint"], std::filesystem::canonical(work_ / "run/checkpoints/step-00000002").string());
  EXPECT_EQ(result["traffic"]["tensor"]["plugin"], "comm-local");

  const Outcome lost = train("--json --set train.steps=1 --set log.metrics=/dev/full", "2>/dev/null");
  EXPECT_EQ(lost.status, 1);
  EXPECT_EQ(Json::parse(lost.text)["exit_status"], 1);
  EXPECT_EQ(Json::parse(lost.text)["missing"]["records"], 1);

  const Outcome refused = train("--json --set model.heads=3 --set train.steps=0", "2>err.txt");
  EXPECT_EQ(refused.status, 2);
  const Json refusal = Json::parse(refused.text);
  EXPECT_EQ(refusal["outcome"], "refused");
  EXPECT_EQ(refusal["exit_status"], 2);
  ASSERT_GE(refusal["errors"].size(), 1u);
  EXPECT_EQ(refusal["errors"][0]["code"], "out-of-range");
  EXPECT_EQ(refusal["errors"][0]["keys"], Json({"train.steps"}));
  EXPECT_THAT(read_file(work_ / "err.txt"), HasSubstr(refusal["errors"][0]["message"].get<std::string>()));

  const Outcome failed = train("--json --set plugins.path=[\\\"" TEST_PLUGINS
                               "\\\"] --set optimizer.plugin=optim-faulty --set optimizer.lr=1e-2 "
                               "--set optimizer.rank=3 --set optimizer.where=step",
                               "2>/dev/null");
  EXPECT_EQ(failed.status, 1);
  const Json failure = Json::parse(failed.text);
  EXPECT_EQ(failure["outcome"], "failed");
  EXPECT_EQ(failure["rank"], 3);
  EXPECT_THAT(failure["reason"].get<std::string>(), HasSubstr("out of luck"));
}

TEST_F(TrainVerb, AnInterruptedRunEndsAfterAStepOfAllRanks) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const int out = ::open((work_ / "out.txt").c_str(), O_WRONLY | O_CREAT, 0600);
    const int result = ::open((work_ / "result.json").c_str(), O_WRONLY | O_CREAT, 0600);
    ::dup2(result, 1);
    ::dup2(out, 2);
    ::unsetenv("TRIAX_PLUGIN_PATH");
    const std::string file = work_ / "run.toml", folder = "run.dir=" + (work_ / "run").string();
    ::execl(TRIAX_BINARY_DIR "/bin/triax", "triax", "train", file.c_str(), "--json", "--set", "train.steps=1000000",
            "--set", folder.c_str(), nullptr);
    ::_exit(127);
  }
  const std::filesystem::path metrics = work_ / "run/metrics.jsonl";
  int status = 0;
  const auto has_stepped = [&] { return std::filesystem::exists(metrics) && std::filesystem::file_size(metrics) > 0; };
  while (!has_stepped() && ::waitpid(child, &status, WNOHANG) == 0) ::usleep(10'000);
  ::kill(child, SIGINT);
  ASSERT_EQ(::waitpid(child, &status, 0), child) << read_file(work_ / "out.txt");
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 75);
  const std::string output = read_file(work_ / "out.txt");
  EXPECT_THAT(
      output,
      HasSubstr("rank 0: SIGINT: stopping at the end of a step; a second signal ends the process immediately\n"));
  EXPECT_THAT(output,
              HasSubstr("stopped by SIGINT after step " + std::to_string(records(metrics).size()) + " of 1000000"));
  const Json result = Json::parse(read_file(work_ / "result.json"));
  EXPECT_EQ(result["outcome"], "stopped");
  EXPECT_EQ(result["signal"], "SIGINT");
  EXPECT_EQ(result["exit_status"], 75);
  EXPECT_EQ(result["steps"], records(metrics).size());
}

} // namespace
} // namespace triax::test
