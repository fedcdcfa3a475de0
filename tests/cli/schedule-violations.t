# SPDX-License-Identifier: Apache-2.0

# Schedules that the verifier refuses

A schedule can be valid CSV and still be wrong: the verifier finds it before training.

  $ . "$TESTDIR/setup"

`interleaved.toml` is a run of four pipeline ranks with two chunks each:

  $ cat > interleaved.toml << 'END'
  > include = ["base.toml"]
  > [model]
  > layers = 8
  > [batch]
  > global = 12
  > [parallel]
  > pipeline = 4
  > chunks = 2
  > [schedule]
  > plugin = "sched-interleaved"
  > END

A schedule from a file, and no file:

  $ cat > run.toml << 'END'
  > include = ["interleaved.toml"]
  > [schedule]
  > plugin = "sched-file"
  > END
  $ triax check run.toml
  base.toml:12:2: schedule.file is missing (CSV of F, B, I and W: a line per pipeline rank, an action per cell)
    add it below [schedule]
  [2]

A file with actions that no schedule has:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,0B0,0B1
  > 1F0,1SEND_F0,1B0,1F1,1B1
  > END
  $ cat > run.toml << 'END'
  > include = ["interleaved.toml"]
  > [schedule]
  > plugin = "sched-file"
  > file = "rows.csv"
  > END
  $ triax check run.toml
  run.toml:4:8: schedule.file: {folder}/rows.csv:2:2: "1SEND_F0" has kind SEND_F; a schedule file has only F, B, I and W (Triax adds the transfers and the end of the step)
    an action is a stage, a kind and a microbatch: 3F1 is the forward of microbatch 1 on stage 3
  [2]

A file of another shape than the run:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,0B0,0B1
  > 1F0,1B0,1F1,1B1
  > END
  $ cat > run.toml << 'END'
  > include = ["interleaved.toml"]
  > [schedule]
  > plugin = "sched-file"
  > file = "rows.csv"
  > END
  $ triax check run.toml
  run.toml:4:8: schedule.file: {folder}/rows.csv has another shape than the run: p = 2 in the file, parallel.pipeline = 4 in the run; v = 1 in the file, parallel.chunks = 2 in the run; m = 2 in the file, batch.global / (parallel.data x batch.micro) = 6 in the run
    parallel.pipeline is set at interleaved.toml:7:12
    parallel.chunks is set at interleaved.toml:8:10
    batch.global is set at interleaved.toml:5:10
    parallel.data = 1 is derived
    batch.micro is set at base.toml:10:9
    set parallel.pipeline = 2, parallel.chunks = 1, batch.global = 2 x parallel.data x batch.micro, or name another file
  [2]

One violation:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3
  > 1B0,1F0,1F1,1B1,1F2,1B2,1F3,1B3
  > END
  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [model]
  > layers = 8
  > [batch]
  > global = 8
  > [parallel]
  > pipeline = 2
  > [schedule]
  > plugin = "sched-file"
  > file = "rows.csv"
  > END
  $ triax check run.toml
  run.toml:9:10: schedule.plugin = "sched-file": rank 1, action 1, 1B0: it needs 1F0, which comes later, at action 2
    move 1F0 before 1B0; "triax schedule RUN.toml", with the same --set, repeats this check without devices and data
  [2]

The first of several violations:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,0F2,0F3
  > 1F0,1F1,1F2,1F3
  > END
  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [model]
  > layers = 8
  > [batch]
  > global = 8
  > [parallel]
  > pipeline = 2
  > [schedule]
  > plugin = "sched-file"
  > file = "rows.csv"
  > END
  $ triax check run.toml
  run.toml:9:10: schedule.plugin = "sched-file": rank 0: 0B0 is missing, the backward of stage 0, microbatch 0
    and 7 more violations: "triax schedule RUN.toml", with the same --set, lists all 8
  [2]

The same before training:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,0F2,0F3
  > 1F0,1F1,1F2,1F3
  > END
  $ cat > run.toml << 'END'
  > include = ["base.toml"]
  > [model]
  > layers = 8
  > [batch]
  > global = 8
  > [parallel]
  > pipeline = 2
  > [schedule]
  > plugin = "sched-file"
  > file = "rows.csv"
  > END
  $ triax train run.toml
  run.toml:9:10: schedule.plugin = "sched-file": rank 0: 0B0 is missing, the backward of stage 0, microbatch 0
    and 7 more violations: "triax schedule RUN.toml", with the same --set, lists all 8
  [2]
