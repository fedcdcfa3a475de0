# SPDX-License-Identifier: Apache-2.0

# CSV files of schedules that the verifier refuses

The files can be read, and the schedules cannot run, or compute something else.

3F0 twice:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,0F2,0F3,0B0,0F4,0B1,0F5,0B2,0F6,0B3,0F7,0B4,0B5,0B6,0B7
  > 1F0,1F1,1F2,1B0,1F3,1B1,1F4,1B2,1F5,1B3,1F6,1B4,1F7,1B5,1B6,1B7
  > 2F0,2F1,2B0,2F2,2B1,2F3,2B2,2F4,2B3,2F5,2B4,2F6,2B5,2F7,2B6,2B7
  > 3F0,3B0,3F1,3B1,3F2,3F0,3B2,3F3,3B3,3F4,3B4,3F5,3B5,3F6,3B6,3F7,3B7
  > END
  $ triax schedule --file rows.csv
  rows.csv:4:6: 3F0: the forward of stage 3, microbatch 0 is already at cell 1
  [1]

Without 2F5:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,0F2,0F3,0B0,0F4,0B1,0F5,0B2,0F6,0B3,0F7,0B4,0B5,0B6,0B7
  > 1F0,1F1,1F2,1B0,1F3,1B1,1F4,1B2,1F5,1B3,1F6,1B4,1F7,1B5,1B6,1B7
  > 2F0,2F1,2B0,2F2,2B1,2F3,2B2,2F4,2B3,2B4,2F6,2B5,2F7,2B6,2B7
  > 3F0,3B0,3F1,3B1,3F2,3B2,3F3,3B3,3F4,3B4,3F5,3B5,3F6,3B6,3F7,3B7
  > END
  $ triax schedule --file rows.csv
  rows.csv:3: 2F5 is missing, the forward of stage 2, microbatch 5
  [1]

Without 1B7:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,0F2,0F3,0B0,0F4,0B1,0F5,0B2,0F6,0B3,0F7,0B4,0B5,0B6,0B7
  > 1F0,1F1,1F2,1B0,1F3,1B1,1F4,1B2,1F5,1B3,1F6,1B4,1F7,1B5,1B6
  > 2F0,2F1,2B0,2F2,2B1,2F3,2B2,2F4,2B3,2F5,2B4,2F6,2B5,2F7,2B6,2B7
  > 3F0,3B0,3F1,3B1,3F2,3B2,3F3,3B3,3F4,3B4,3F5,3B5,3F6,3B6,3F7,3B7
  > END
  $ triax schedule --file rows.csv
  rows.csv:2: 1B7 is missing, the backward of stage 1, microbatch 7
  [1]

Without 1I1:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,0F2,0I0,0W0,0F3,0I1,0W1,0I2,0W2,0I3,0W3
  > 1F0,1F1,1I0,1F2,1W0,1F3,1I2,1W1,1I3,1W2,1W3
  > 2F0,2I0,2F1,2I1,2F2,2I2,2W0,2F3,2I3,2W1,2W2,2W3
  > END
  $ triax schedule --file rows.csv
  rows.csv:2: 1I1 is missing, the input gradient of stage 1, microbatch 1
  [1]

Without 0W2:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,0F2,0I0,0W0,0F3,0I1,0W1,0I2,0I3,0W3
  > 1F0,1F1,1I0,1F2,1I1,1W0,1F3,1I2,1W1,1I3,1W2,1W3
  > 2F0,2I0,2F1,2I1,2F2,2I2,2W0,2F3,2I3,2W1,2W2,2W3
  > END
  $ triax schedule --file rows.csv
  rows.csv:1: 0W2 is missing, the weight gradient of stage 0, microbatch 2
  [1]

2B3 after its input gradient:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,0F2,0I0,0W0,0F3,0I1,0W1,0I2,0W2,0I3,0W3
  > 1F0,1F1,1I0,1F2,1I1,1W0,1F3,1I2,1W1,1I3,1W2,1W3
  > 2F0,2I0,2F1,2I1,2F2,2I2,2W0,2F3,2I3,2W1,2W2,2W3,2B3
  > END
  $ triax schedule --file rows.csv
  rows.csv:3:13: 2B3: the input gradient of stage 2, microbatch 3 is already at cell 9
  [1]

2W3 after its backward:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3
  > 1F0,1F1,1F2,1F3,1B0,1B1,1B2,1B3
  > 2F0,2F1,2F2,2F3,2B0,2B1,2B2,2B3,2W3
  > END
  $ triax schedule --file rows.csv
  rows.csv:3:9: 2W3: the weight gradient of stage 2, microbatch 3 is already at cell 8
  [1]

0B0 before 0F0:

  $ cat > rows.csv << 'END'
  > 0B0,0F1,0F2,0F3,0F0,0F4,0B1,0F5,0B2,0F6,0B3,0F7,0B4,0B5,0B6,0B7
  > 1F0,1F1,1F2,1B0,1F3,1B1,1F4,1B2,1F5,1B3,1F6,1B4,1F7,1B5,1B6,1B7
  > 2F0,2F1,2B0,2F2,2B1,2F3,2B2,2F4,2B3,2F5,2B4,2F6,2B5,2F7,2B6,2B7
  > 3F0,3B0,3F1,3B1,3F2,3B2,3F3,3B3,3F4,3B4,3F5,3B5,3F6,3B6,3F7,3B7
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:1: 0B0: it needs 0F0, which comes later, at cell 5
    move 0F0 before 0B0
  [1]

1W0 before 1I0:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,0F2,0I0,0W0,0F3,0I1,0W1,0I2,0W2,0I3,0W3
  > 1F0,1F1,1W0,1F2,1I1,1I0,1F3,1I2,1W1,1I3,1W2,1W3
  > 2F0,2I0,2F1,2I1,2F2,2I2,2W0,2F3,2I3,2W1,2W2,2W3
  > END
  $ triax schedule --file rows.csv
  rows.csv:2:3: 1W0: it needs 1I0, which comes later, at cell 6
    move 1I0 before 1W0
  rows.csv:2:5: 1I1: the input gradient of microbatch 0 comes later, at cell 6; gradients of a stage are added in ascending order of microbatches, so that every schedule gives the same bits
  [1]

1B3 before 1B2:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,0F2,0F3,0B0,0F4,0B1,0F5,0B2,0F6,0B3,0F7,0B4,0B5,0B6,0B7
  > 1F0,1F1,1F2,1B0,1F3,1B1,1F4,1B3,1F5,1B2,1F6,1B4,1F7,1B5,1B6,1B7
  > 2F0,2F1,2B0,2F2,2B1,2F3,2B2,2F4,2B3,2F5,2B4,2F6,2B5,2F7,2B6,2B7
  > 3F0,3B0,3F1,3B1,3F2,3B2,3F3,3B3,3F4,3B4,3F5,3B5,3F6,3B6,3F7,3B7
  > END
  $ triax schedule --file rows.csv
  rows.csv:2:8: 1B3: the backward of microbatch 2 comes later, at cell 10; gradients of a stage are added in ascending order of microbatches, so that every schedule gives the same bits
  [1]

2B1 before 2B0:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,2F0,2F1,0F2,2B1,0F3,2B0,2F2,0B0,2F3,0B1,2B2,2B3,0B2,0B3
  > 1F0,1F1,3F0,3B0,3F1,3B1,1F2,1B0,1F3,1B1,3F2,3B2,3F3,3B3,1B2,1B3
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:6: 2B1: the backward of microbatch 0 comes later, at cell 8; gradients of a stage are added in ascending order of microbatches, so that every schedule gives the same bits
  [1]

0W2 before 0W1:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,0F2,0I0,0W0,0F3,0I1,0W2,0I2,0W1,0I3,0W3
  > 1F0,1F1,1I0,1F2,1I1,1W0,1F3,1I2,1W1,1I3,1W2,1W3
  > 2F0,2I0,2F1,2I1,2F2,2I2,2W0,2F3,2I3,2W1,2W2,2W3
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:8: 0W2: it needs 0I2, which comes later, at cell 9
    move 0I2 before 0W2
  rows.csv:1:8: 0W2: the weight gradient of microbatch 1 comes later, at cell 10; gradients of a stage are added in ascending order of microbatches, so that every schedule gives the same bits
  [1]

A rank that waits for a later action of its own, through another rank:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,0B0,0F2,0F3,0F4,0B1,0F5,0B2,0F6,0B3,0F7,0B4,0B5,0B6,0B7
  > 1F0,1F1,1F2,1B0,1F3,1B1,1F4,1B2,1F5,1B3,1F6,1B4,1F7,1B5,1B6,1B7
  > 2F0,2F1,2B0,2F2,2B1,2F3,2B2,2F4,2B3,2F5,2B4,2F6,2B5,2F7,2B6,2B7
  > 3F0,3B0,3F1,3B1,3F2,3B2,3F3,3B3,3F4,3B4,3F5,3B5,3F6,3B6,3F7,3B7
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:3: 0B0: it waits for 1B0 at line 2, cell 4, which is never reached
  rows.csv:2:3: 1F2: it waits for 0F2 at line 1, cell 4, which is never reached
  rows.csv:3:4: 2F2: it waits for 1F2 at line 2, cell 3, which is never reached
  rows.csv:4:5: 3F2: it waits for 2F2 at line 3, cell 4, which is never reached
  [1]

Ranks that wait for each other:

  $ cat > rows.csv << 'END'
  > 0F0,0B0,0F1,0B1
  > 1F0,1F1,1B0,1B1
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:2: 0B0: it waits for 1B0 at line 2, cell 3, which is never reached
  rows.csv:2:2: 1F1: it waits for 0F1 at line 1, cell 3, which is never reached
  [1]

Chunks that wait for each other:

  $ cat > rows.csv << 'END'
  > 0F0,2F0,2B0,0B0
  > 3F0,1F0,3B0,1B0
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:2: 2F0: it waits for 1F0 at line 2, cell 2, which is never reached
  rows.csv:2:1: 3F0: it waits for 2F0 at line 1, cell 2, which is never reached
  [1]

More microbatches in flight than --cap allows:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,0F2,0F3,0B0,0F4,0B1,0F5,0B2,0F6,0B3,0F7,0B4,0B5,0B6,0B7
  > 1F0,1F1,1F2,1B0,1F3,1B1,1F4,1B2,1F5,1B3,1F6,1B4,1F7,1B5,1B6,1B7
  > 2F0,2F1,2B0,2F2,2B1,2F3,2B2,2F4,2B3,2F5,2B4,2F6,2B5,2F7,2B6,2B7
  > 3F0,3B0,3F1,3B1,3F2,3B2,3F3,3B3,3F4,3B4,3F5,3B5,3F6,3B6,3F7,3B7
  > END
  $ triax schedule --file rows.csv --cap 3
  rows.csv:1:4: 0F3: more than 3 microbatch chunks are in flight on its rank
  rows.csv:1:6: 0F4: more than 3 microbatch chunks are in flight on its rank
  rows.csv:1:8: 0F5: more than 3 microbatch chunks are in flight on its rank
  rows.csv:1:10: 0F6: more than 3 microbatch chunks are in flight on its rank
  rows.csv:1:12: 0F7: more than 3 microbatch chunks are in flight on its rank
    use --cap 4, or another schedule
  [1]

The same with halves of backwards:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,0F2,0I0,0W0,0F3,0I1,0W1,0I2,0W2,0I3,0W3
  > 1F0,1F1,1I0,1F2,1I1,1W0,1F3,1I2,1W1,1I3,1W2,1W3
  > 2F0,2I0,2F1,2I1,2F2,2I2,2W0,2F3,2I3,2W1,2W2,2W3
  > END
  $ triax schedule --file rows.csv --cap 2
  rows.csv:1:3: 0F2: more than 2 microbatch chunks are in flight on its rank
  rows.csv:1:6: 0F3: more than 2 microbatch chunks are in flight on its rank
  rows.csv:2:4: 1F2: more than 2 microbatch chunks are in flight on its rank
  rows.csv:2:7: 1F3: more than 2 microbatch chunks are in flight on its rank
  rows.csv:3:5: 2F2: more than 2 microbatch chunks are in flight on its rank
  rows.csv:3:8: 2F3: more than 2 microbatch chunks are in flight on its rank
    use --cap 3, or another schedule
  [1]
