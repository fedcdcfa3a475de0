# SPDX-License-Identifier: Apache-2.0

# CSV files that are not schedules

A line is a pipeline rank, and a cell is an action: a stage, a kind (F, B, I, W) and a microbatch.

An empty file:

  $ > rows.csv
  $ triax schedule --file rows.csv
  rows.csv: has no action
    a schedule has a line per pipeline rank: 0F0,0B0
  [2]

A file with idle cells alone:

  $ printf ',,,\r\n,,,\r\n' > rows.csv
  $ triax schedule --file rows.csv
  rows.csv: has no action
    a schedule has a line per pipeline rank: 0F0,0B0
  [2]

A line without a stage:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,0F2,0F3,0B0,0F4,0B1,0F5,0B2,0F6,0B3,0F7,0B4,0B5,0B6,0B7
  > 
  > 1F0,1F1,1F2,1B0,1F3,1B1,1F4,1B2,1F5,1B3,1F6,1B4,1F7,1B5,1B6,1B7
  > END
  $ triax schedule --file rows.csv
  rows.csv:2: has no stage: each line is a pipeline rank, which has one or more stages
    remove the empty line, or add the actions of the rank
  [2]

Bytes that are not text:

  $ printf '0F0,0B0\n1F0,\0\001\177ELF\n' > rows.csv
  $ triax schedule --file rows.csv
  rows.csv:2: contains the byte 0x00, which is not text
    name a CSV file: a line per pipeline rank, an action per cell
  [2]

UTF-16:

  $ printf '\377\3760\0F\0000\0,\0000\0B\0000\0\n\0' > rows.csv
  $ triax schedule --file rows.csv
  rows.csv:1: contains the byte 0x00, which is not text
    name a CSV file: a line per pipeline rank, an action per cell
  [2]

A non-breaking space:

  $ printf '0F0,\302\2400B0\n1F0,1B0\n' > rows.csv
  $ triax schedule --file rows.csv
  rows.csv:1:2: "\xc2\xa00B0" is not an action (esc)
    an action is a stage, a kind and a microbatch: 3F1 is the forward of microbatch 1 on stage 3
  [2]

A line of headings:

  $ cat > rows.csv << 'END'
  > rank 0,rank 1
  > 0F0,0B0
  > 1F0,1B0
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:1: "rank 0" is not an action
    an action is a stage, a kind and a microbatch: 3F1 is the forward of microbatch 1 on stage 3
  rows.csv:1:2: "rank 1" is not an action
  [2]

Semicolons between the cells:

  $ cat > rows.csv << 'END'
  > 0F0;0B0
  > 1F0;1B0
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:1: "0F0;0B0" is not an action
    an action is a stage, a kind and a microbatch: 3F1 is the forward of microbatch 1 on stage 3
  rows.csv:2:1: "1F0;1B0" is not an action
  [2]

Small letters:

  $ cat > rows.csv << 'END'
  > 0f0,0b0
  > 1f0,1b0
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:1: "0f0" is not an action
    an action is a stage, a kind and a microbatch: 3F1 is the forward of microbatch 1 on stage 3
  rows.csv:1:2: "0b0" is not an action
  rows.csv:2:1: "1f0" is not an action
  rows.csv:2:2: "1b0" is not an action
  [2]

A cell without a stage:

  $ cat > rows.csv << 'END'
  > F0,B0
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:1: "F0" has no stage
    an action is a stage, a kind and a microbatch: 3F1 is the forward of microbatch 1 on stage 3
  rows.csv:1:2: "B0" has no stage
  [2]

A cell without a microbatch:

  $ cat > rows.csv << 'END'
  > 0F0,0B0
  > 1F,1B0
  > END
  $ triax schedule --file rows.csv
  rows.csv:2:1: "1F" has no microbatch
    an action is a stage, a kind and a microbatch: 3F1 is the forward of microbatch 1 on stage 3
  [2]

A negative microbatch:

  $ cat > rows.csv << 'END'
  > 0F0,0F-1,0B0
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:2: "0F-1" is not an action
    an action is a stage, a kind and a microbatch: 3F1 is the forward of microbatch 1 on stage 3
  [2]

A microbatch far above the others:

  $ cat > rows.csv << 'END'
  > 0F0,0B0,0F16777215,0B16777215
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:3: "0F16777215" has microbatch 16777215, but no cell has microbatch 1
    number them from 0 without gaps
  [2]

A microbatch above all limits:

  $ cat > rows.csv << 'END'
  > 0F0,0B0,0F184467440737095516160
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:3: "0F184467440737095516160" has a microbatch above 16777215, the maximum
    number them from 0 without gaps
  [2]

An unknown kind:

  $ cat > rows.csv << 'END'
  > 0F0,0B0
  > 1F0,1X0,1B0
  > END
  $ triax schedule --file rows.csv
  rows.csv:2:2: "1X0" has unknown kind X; known: F, B, I, W, R, SEND_F, RECV_F, SEND_B, RECV_B, GATHER_F, GATHER_B, REDUCE_GRAD, REDUCE_TIED, NORM, OPT_STEP, GATHER_PARAM, UNSHARD, RESHARD
    an action is a stage, a kind and a microbatch: 3F1 is the forward of microbatch 1 on stage 3
  [2]

Two passes at once, as PyTorch writes them:

  $ cat > rows.csv << 'END'
  > 0F0,(0F1;0B0)OVERLAP_F_B,0B1
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:2: "(0F1;0B0)OVERLAP_F_B" runs two passes at once, which this version does not support
    write two separate cells, one after the other
  [2]

Slices, and a second pipeline:

  $ cat > rows.csv << 'END'
  > 0F0.1,0B0,0F0'
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:1: "0F0.1" has a slice or a second pipeline; this version supports neither
  rows.csv:1:3: "0F0'" has a slice or a second pipeline; this version supports neither
  [2]

A file that ends within a cell:

  $ printf '0F0,0F1,0F2,0F3,0B0,0F4,0B1,0F5,0B2,0F6,0B3,0F7,0B4,0B5,0B6,0B7\n1F0,1F1,1F2,1B0,1F3,1B1,1F4,1B2,1F5,1B3,1F6,1B4,1F7,1B5,1B6,1B7\n2F0,2F1,2B0,2F2,2B1,2F3,2B2,2F4,2B3,2F5,2B4,2F6,2B5,2F7,2B6,2B7\n3F0,3B0,3F1,3B1,3F2,3B2,3F3,3B3,3F4,3B4,3F' > rows.csv
  $ triax schedule --file rows.csv
  rows.csv:4:11: "3F" has no microbatch
    an action is a stage, a kind and a microbatch: 3F1 is the forward of microbatch 1 on stage 3
  [2]

A file that ends after a cell:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,0F2,0F3,0B0,0F4,0B1,0F5,0B2,0F6,0B3,0F7,0B4,0B5,0B6,0B7
  > 1F0,1F1,1F2,1B0,1F3,1B1,1F4,1B2,1F5,1B3,1F6,1B4,1F7,1B5,1B6,1B7
  > 2F0,2F1,2B0,2F2,2B1,2F3,2B2,2F4,2B3,2F5,2B4,2F6,2B5,2F7,2B6,2B7
  > 3F0,3B0,3F1,3B1,3F2,3B2,3F3,3B3,3F4
  > END
  $ triax schedule --file rows.csv
  rows.csv:4: 3B4 is missing, the backward of stage 3, microbatch 4
  rows.csv:4: 3F5 is missing, the forward of stage 3, microbatch 5
  rows.csv:4: 3B5 is missing, the backward of stage 3, microbatch 5
  rows.csv:4: 3F6 is missing, the forward of stage 3, microbatch 6
  rows.csv:4: 3B6 is missing, the backward of stage 3, microbatch 6
  rows.csv:4: 3F7 is missing, the forward of stage 3, microbatch 7
  rows.csv:4: 3B7 is missing, the backward of stage 3, microbatch 7
  [1]

A rank less than expected:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,0F2,0F3,0B0,0F4,0B1,0F5,0B2,0F6,0B3,0F7,0B4,0B5,0B6,0B7
  > 1F0,1F1,1F2,1B0,1F3,1B1,1F4,1B2,1F5,1B3,1F6,1B4,1F7,1B5,1B6,1B7
  > 2F0,2F1,2B0,2F2,2B1,2F3,2B2,2F4,2B3,2F5,2B4,2F6,2B5,2F7,2B6,2B7
  > END
  $ triax schedule --file rows.csv --pipeline 4
  --pipeline 4 does not match rows.csv, which has 3 pipeline ranks
    if the file is right, remove --pipeline
  [2]

A rank that is left out:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,0F2,0F3,0B0,0F4,0B1,0F5,0B2,0F6,0B3,0F7,0B4,0B5,0B6,0B7
  > 1F0,1F1,1F2,1B0,1F3,1B1,1F4,1B2,1F5,1B3,1F6,1B4,1F7,1B5,1B6,1B7
  > 3F0,3B0,3F1,3B1,3F2,3B2,3F3,3B3,3F4,3B4,3F5,3B5,3F6,3B6,3F7,3B7
  > END
  $ triax schedule --file rows.csv
  rows.csv:3:1: "3F0" has stage 3, but no cell has stage 2
    number them from 0 without gaps
  [2]

A microbatch that is left out:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,0F2,0F3,0B0,0F4,0B1,0F9,0B2,0F6,0B3,0F7,0B4,0B9,0B6,0B7
  > 1F0,1F1,1F2,1B0,1F3,1B1,1F4,1B2,1F9,1B3,1F6,1B4,1F7,1B9,1B6,1B7
  > 2F0,2F1,2B0,2F2,2B1,2F3,2B2,2F4,2B3,2F9,2B4,2F6,2B9,2F7,2B6,2B7
  > 3F0,3B0,3F1,3B1,3F2,3B2,3F3,3B3,3F4,3B4,3F9,3B9,3F6,3B6,3F7,3B7
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:10: "0F6" has microbatch 6, but no cell has microbatch 5
    number them from 0 without gaps
  [2]

Ranks with different numbers of stages:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,2F0,2F1,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,2B2,2B3,0B2,0B3
  > 1F0,1F1,1F2,1B0,1F3,1B1,1B2,1B3
  > END
  $ triax schedule --file rows.csv
  rows.csv:2: has 1 stages, but line 1 has 2: all ranks must have the same number
    the number is parallel.chunks
  [2]

A stage on two ranks:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,0F2,0F3,0B0,0F4,0B1,0F5,0B2,0F6,0B3,0F7,0B4,0B5,0B6,0B7
  > 1F0,1F1,1F2,1B0,1B1,1F4,1B2,1F5,1B3,1F6,1B4,1F7,1B5,1B6,1B7
  > 2F0,2F1,2B0,2F2,2B1,2F3,2B2,2F4,2B3,2F5,2B4,2F6,2B5,2F7,2B6,2B7,1F3
  > 3F0,3B0,3F1,3B1,3F2,3B2,3F3,3B3,3F4,3B4,3F5,3B5,3F6,3B6,3F7,3B7
  > END
  $ triax schedule --file rows.csv
  rows.csv:3:17: "1F3" puts stage 1 on rank 2, but 1F0 in line 2, cell 1 puts it on rank 1
    each line is a rank, and all actions of a stage are on one rank
  [2]

Neither the name of a file nor a cell reaches a terminal raw:

  $ name=$(printf 'a\033[2J.csv')
  $ echo 0F0,0B0 > "$name"
  $ triax schedule --file "$name" | head -1
  a\u001B[2J.csv: p = 1, m = 1, v = 1; F takes one unit of time, B two
  $ triax simulate --file "$name" --forward-ms 1 --input-ms 1 --weight-ms 1 --link-ms 0 | head -1
  a\u001B[2J.csv: p = 1, m = 1, v = 1; F 1 ms, I 1 ms, W 1 ms, link 0 ms
  $ printf '0F0\177\302\23331m,0B0\n' > rows.csv
  $ triax schedule --file rows.csv
  rows.csv:1:1: "0F0\u007F\u009B31m" is not an action
    an action is a stage, a kind and a microbatch: 3F1 is the forward of microbatch 1 on stage 3
  [2]
