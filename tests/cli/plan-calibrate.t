# SPDX-License-Identifier: Apache-2.0

# This machine as a cluster

  $ cat > run.toml <<'END'
  > [model]
  > plugin = "model-gpt"
  > layers = 4
  > hidden = 32
  > heads = 4
  > sequence = 16
  > vocab = 257
  > [batch]
  > global = 8
  > [schedule]
  > plugin = "sched-1f1b"
  > [comm]
  > plugin = "comm-local"
  > [kernels]
  > plugin = "kernels-cpu"
  > [optimizer]
  > plugin = "optim-adamw"
  > lr = 1e-3
  > [train]
  > steps = 2
  > END
  $ triax plan run.toml --calibrate here.toml --hidden 16 > measured
  $ head -5 measured | tr -s ' ' | sed 's/ [0-9].*//'
   steps measured predicted error
   one rank
   microbatch
   recomputation
   twice the width
  $ tail -1 measured
  wrote here.toml
  $ grep -c 'origin = "measured"' here.toml
  12
  $ sed -n '/profile/,/^$/p' here.toml | sed -e '/processor/s/".*/".../' -e '/cores/s/[0-9].*/N/' -e 's/"[0-9a-f]\{32\}"/"..."/'
  [profile]
  processor = "...
  cores = N
  precision = "fp32"
  kernels = "kernels-cpu"
  kernels_build = "..."
  comm = "comm-local"
  comm_build = "..."
  

The file is a cluster of one node, whose constants are those of this machine:

  $ triax plan run.toml --cluster here.toml --gpus 1 --top 1 --reserve 0 | grep -o '^1 GPU of\|^the first plan as a run'
  1 GPU of
  the first plan as a run
  $ columns=id,set,unit,layers,hidden,heads,seq,vocab,p,t,d,b,B,v,recompute,sp,sg,fused,code,ddp
  $ { echo $columns; echo one,own,s/step,4,32,4,16,257,1,1,1,2,8,1,none,0,0,1,2022,local; } > runs.csv
  $ triax plan --cluster here.toml --predict runs.csv
  here.toml: measured with train.precision fp32, but --predict predicts bf16
    measure again: triax plan RUN.toml --set train.precision=bf16 --calibrate here.toml
  [2]
  $ sed 's/^precision = .*/precision = "bf16"/' here.toml > bf16.toml
  $ triax plan --cluster bf16.toml --predict runs.csv | sed 's/[0-9.e-]*$//'
  id,prediction
  one,

It can be measured again, with the same command:

  $ triax plan run.toml --calibrate here.toml --hidden 16 --json | sed 's/_s": .*[0-9]/_s": N/' | head -8
  {
    "file": "here.toml",
    "steps": [
      {
        "steps": "one rank",
        "measured_s": N,
        "predicted_s": N
      },

## A profile that does not hold here

  $ sed 's/^cores = .*/cores = 1000/' here.toml > other.toml; triax plan run.toml --cluster other.toml 2>&1 | sed 's/of .*, but this/of ..., but this/; s/has .*/has .../'
  other.toml: measured with 1000 cores of ..., but this machine has ...
    measure again: triax plan RUN.toml --calibrate other.toml
  $ triax plan run.toml --cluster here.toml --set comm.data.plugin=comm-faulty --set comm.data.inner=comm-local
  here.toml: measured with comm-local, but the run has comm.data.plugin = "comm-faulty"
    measure again: triax plan RUN.toml --calibrate here.toml
  [2]
  $ sed 's/^kernels_build = .*/kernels_build = "0"/' here.toml > other.toml
  $ triax plan run.toml --cluster other.toml 2>&1 | sed 's/build [0-9a-f]\{32\}/build .../'
  other.toml: measured with build 0 of kernels-cpu, but {plugins}/kernels-cpu.so is build ...
    measure again: triax plan RUN.toml --calibrate other.toml
  $ sed 's/^kernels_build = .*/kernels_build = "0"/' bf16.toml > other.toml
  $ triax plan --cluster other.toml --predict runs.csv 2>&1 | sed 's/build [0-9a-f]\{32\}/build .../'
  other.toml: measured with build 0 of kernels-cpu, but {plugins}/kernels-cpu.so is build ...
    measure again: triax plan RUN.toml --calibrate other.toml
  $ triax plan run.toml --cluster here.toml --set kernels.plugin=kernels-sim --set train.precision=bf16
  here.toml: measured with kernels-cpu, but the run has kernels.plugin = "kernels-sim"
    measure again: triax plan RUN.toml --calibrate here.toml
  here.toml: measured with train.precision fp32, but the run has bf16
    measure again: triax plan RUN.toml --calibrate here.toml
  [2]
  $ sed '/^comm = /d' here.toml > other.toml; triax plan run.toml --cluster other.toml
  other.toml:6:2: profile.comm is missing
    write a name in quotes
  [2]

## Refused calibrations

  $ cp $SOURCE/clusters/a100-dgx.toml mine.toml; triax plan run.toml --calibrate mine.toml
  --calibrate: mine.toml exists and has no [profile]
    name another file, or remove this one
  [2]
  $ triax plan run.toml --calibrate no/here.toml
  --calibrate: folder "no" does not exist
    name a file in a folder that exists and that you can write to
  [2]
  $ triax plan run.toml --calibrate new.toml --set kernels.plugin=kernels-sim
  --calibrate measures kernel sets, but kernels-sim does not compute
    name a kernel set that computes, such as --set kernels.plugin=kernels-cpu
  [2]
  $ triax plan run.toml --calibrate new.toml --set train.precision=fp64
  --calibrate measures fp32, bf16 and fp16, not fp64
    use --set train.precision=fp32
  [2]
  $ triax plan run.toml --calibrate new.toml --set comm.data.plugin=comm-faulty --set comm.data.inner=comm-local
  --calibrate measures one communicator, but the run has comm.plugin = "comm-local" and comm.data.plugin = "comm-faulty"
    use one for all axes: remove [comm.tensor], [comm.pipeline] and [comm.data], and set [comm]
  [2]
  $ triax plan run.toml --calibrate new.toml --set comm.plugin=comm-faulty --set comm.inner=comm-local --set comm.data.seed=3
  --calibrate measures one communicator, but [comm.data] and [comm] have different options of comm-faulty
    use one for all axes: remove [comm.tensor], [comm.pipeline] and [comm.data], and set [comm]
  [2]
  $ triax plan --calibrate new.toml
  triax: RUN.toml is required with --calibrate, which measures its plugins
    see: triax plan --help
  [2]
  $ triax plan run.toml --hidden 32
  triax: --hidden requires --calibrate
    see: triax plan --help
  [2]

Ctrl-C leaves no file:

  $ timeout --preserve-status -s INT 0.5 triax plan run.toml --calibrate new.toml --hidden 1024 > /dev/null 2>&1
  [130]
  $ ls new.toml 2> /dev/null
  [2]
