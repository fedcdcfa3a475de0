# SPDX-License-Identifier: Apache-2.0

# triax generate

  $ . "$TESTDIR/setup"
  $ steady() {
  >   sed -E -e 's/^[0-9-]+ [0-9:.]+ //' -e 's/in [0-9.]+ s( \([0-9.]+ tokens\/s\))?/in {seconds} s/g' \
  >     -e 's/"((prompt_)?tokens_per_s)": [0-9.e+]+/"\1": {rate}/' -e 's/, [0-9]+ CPU threads?( each)?( on [0-9]+ cores?)?/, .../'
  > }
  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [model]
  > sequence = 16
  > dropout = 0
  > [train]
  > steps = 30
  > [run]
  > dir = "run"
  > END
  $ seq 10 99 | tr '\n' ' ' > text.txt
  $ triax data prepare --input text.txt --output text --tokenizer byte --force > /dev/null
  $ triax train run.toml > /dev/null 2>&1

The text is standard output, and standard error is the log:

  $ triax generate run.toml --prompt "1 12 13 " --max-tokens 6 2> /dev/null
  $ triax generate run --prompt "1 12 13 " --max-tokens 6 2>&1 > /dev/null | steady

The prompt may be a file or standard input, without its last line break:

  $ echo "1 12 13 " > prompt.txt
  $ triax generate run.toml --file prompt.txt --max-tokens 6 2> /dev/null
  $ triax generate run.toml - --max-tokens 6 < prompt.txt 2> /dev/null

The text is the same on every layout:

  $ for keys in parallel.tensor=2 parallel.pipeline=2 'parallel.pipeline=2 --set parallel.tensor=2' kernels.plugin=kernels-cpu; do
  >   triax generate run.toml --prompt "1 12 13 " --max-tokens 6 --set $keys 2> /dev/null
  > done

Stop texts end it, and so does the last position of the model:

  $ triax generate run.toml --prompt "1 12 13 " --stop "x" --stop " " 2> /dev/null
  $ triax generate run.toml --prompt "1 12 13 " --max-tokens 0 2>&1 > /dev/null | steady | tail -2

An empty prompt is the token that separates documents:

  $ triax generate run.toml --prompt "" --max-tokens 1 --json 2> /dev/null | grep -A 2 prompt_tokens

Samples come one after the other. A sample does not depend on the others:

  $ triax generate run.toml --prompt "1 12 13 " --max-tokens 6 --temperature 1.2 --top-k 9 --top-p 0.95 --min-p 0.01 \
  >   --repetition-penalty 1.1 --seed 3 --samples 3 2> /dev/null > three
  $ cat three
  $ triax generate run.toml --prompt "1 12 13 " --max-tokens 6 --temperature 1.2 --top-k 9 --top-p 0.95 --min-p 0.01 \
  >   --repetition-penalty 1.1 --seed 3 --set parallel.pipeline=2 2> /dev/null | diff - <(sed -n 2p three)

One object:

  $ triax generate run.toml --prompt "1 12" --max-tokens 2 --json 2> /dev/null | steady

A closed standard output ends it quietly:

  $ { triax generate run.toml --prompt "1 12 13 " --max-tokens 6; echo $? > status; } 2> log | true
  $ cat status
  $ grep -v "prompt tokens" log | steady | sed -E 's/; .*/; .../'

Without the training data, the tokenizer must be named:

  $ mkdir away && mv text.* away
  $ triax generate run.toml --prompt "1 12 13 " --max-tokens 6
  $ triax generate run.toml --prompt "1 12 13 " --max-tokens 6 --tokenizer byte 2> /dev/null
  $ mv away/* .

## Refusals

  $ triax generate run.toml < /dev/null
  $ triax generate run.toml --prompt a --file prompt.txt
  $ triax generate run.toml something --prompt a
  $ triax generate run.toml --file none.txt
  $ triax generate run.toml --prompt "a text that has more bytes than the model has positions"
  $ triax generate run.toml --prompt a --top-k 5 --top-p 0.5 --min-p 0.1 --seed 1 --samples 2
  $ triax generate run.toml --prompt a --temperature -1
  $ triax generate run.toml --prompt a --stop ""
  $ triax generate run.toml --prompt a --set parallel.data=2 --set parallel.chunks=2 --set parallel.sequence=true
  $ triax generate run.toml --prompt a --set model.hidden=64
  $ triax generate run.toml --prompt a --set train.precision=fp64
  $ triax generate run.toml --prompt a --set parallel.pipeline=9
  $ triax generate run.toml --prompt a --set kernels.plugin=kernels-sim
  $ triax generate run.toml --prompt a --set model.vocab=100
  $ triax generate run.toml --prompt a --tokenizer gpt3
  $ triax generate gone --prompt a
  $ RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=29500 \
  >   triax generate run.toml --prompt a
  $ triax generate gone --prompt a --json

A damaged checkpoint:

  $ checkpoint=$(ls -d run/checkpoints/step-*)
  $ printf 'x' | dd of=$checkpoint/weights-00000.safetensors bs=1 seek=9000 conv=notrunc 2> /dev/null
  $ triax generate run.toml --prompt a 2>&1 | steady | tail -3
