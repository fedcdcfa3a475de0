# SPDX-License-Identifier: Apache-2.0

# What is not a checkpoint

  $ . "$TESTDIR/setup"
  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [train]
  > steps = 8
  > [run]
  > dir = "run"
  > END
  $ triax train run.toml > /dev/null 2>&1
  $ at() { echo run/checkpoints/step-0000000$1; }
  $ cp -r run torn

  $ triax checkpoint
  triax: missing subcommand; use one of: list, show, verify, diff, convert, average
    see: triax checkpoint --help
  [2]
  $ triax checkpoint show
  triax: CHECKPOINT is required
    see: triax checkpoint show --help
  [2]
  $ triax checkpoint list ''
  the name of a checkpoint or run is empty
    name a run's folder, its TOML file, or a folder of checkpoints
  [2]
  $ triax checkpoint show nothing
  nothing: does not exist
    name a checkpoint folder (step-N), a run's folder, or its TOML file
  [2]
  $ triax checkpoint show nothing --json
  nothing: does not exist
    name a checkpoint folder (step-N), a run's folder, or its TOML file
  {"errors":[{"code":"not-found","keys":["CHECKPOINT"],"file":"nothing","line":null,"column":null,"message":"does not exist","hint":"name a checkpoint folder (step-N), a run's folder, or its TOML file"}]}
  [2]
  $ triax checkpoint show text.txt
  text.txt: is not a checkpoint
    name a checkpoint folder (step-N), a run's folder, or its TOML file
  [2]
  $ triax checkpoint list $(at 8)
  run/checkpoints/step-00000008: is a checkpoint, not a run
    triax checkpoint show describes it
  [2]
  $ mkdir -p empty/checkpoints/step-00000002
  $ triax checkpoint list empty
  no complete checkpoint in empty/checkpoints
    a run saves one at its end, when it is stopped, and every checkpoint.every steps
  [2]
  $ mkdir nothing-saved
  $ triax checkpoint list nothing-saved
  no complete checkpoint in nothing-saved
    name a run's folder, its TOML file, or a folder of checkpoints
  [2]
  $ triax checkpoint verify empty/checkpoints/step-00000002
  empty/checkpoints/step-00000002: has no manifest.json: the checkpoint is not complete
    use another checkpoint
  [2]
  $ sed 's/steps = 8/steps = /' run.toml > broken.toml
  $ triax checkpoint list broken.toml
  broken.toml:3:8: not valid TOML: steps has no value
    write steps = VALUE, or remove the line
  [2]
  $ sed -i 's/"version": 1/"version": 9/' torn/checkpoints/step-00000008/manifest.json
  $ triax checkpoint show torn
  torn/checkpoints/step-00000008/manifest.json: has version 9 of the format, but this program reads up to 1
    use the version of Triax that wrote it, or a later one
  [2]
