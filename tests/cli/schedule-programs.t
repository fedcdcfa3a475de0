# SPDX-License-Identifier: Apache-2.0

# CSV files of lowered schedules that are refused

A lowered file also has the transfers of each rank, and what ends a step.

A program of PyTorch:

  $ sed 's/$/\r/' > rows.csv << 'END'
  > 0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0WAIT_REDUCE_GRAD,0RESHARD
  > 1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1WAIT_SEND_B0,1REDUCE_GRAD,1WAIT_REDUCE_GRAD,1RESHARD
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:7: "0WAIT_REDUCE_GRAD" is a wait of PyTorch; Triax adds the waits that an action needs
    remove cells of that kind, or use a file with only the compute actions
  rows.csv:2:6: "1WAIT_SEND_B0" is a wait of PyTorch; Triax adds the waits that an action needs
  rows.csv:2:8: "1WAIT_REDUCE_GRAD" is a wait of PyTorch; Triax adds the waits that an action needs
  [2]

NORM with a stage:

  $ cat > rows.csv << 'END'
  > 0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0F2,0RECV_B1,0SEND_F2,0B1,0F3,0RECV_B2,0SEND_F3,0B2,0RECV_B3,0B3,0REDUCE_GRAD,REDUCE_TIED,0NORM,0OPT_STEP
  > 1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1RECV_F2,1F2,1B2,1SEND_B2,1RECV_F3,1F3,1B3,1SEND_B3,1REDUCE_GRAD0,REDUCE_TIED,NORM,1OPT_STEP
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:19: "0NORM" applies to a whole rank, but has a stage or a microbatch
    write NORM
  rows.csv:2:17: "1REDUCE_GRAD0" has a microbatch, but applies to a whole stage
    write 3REDUCE_GRAD
  [2]

Without 0F3:

  $ cat > rows.csv << 'END'
  > 0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0F2,0RECV_B1,0SEND_F2,0B1,0RECV_B2,0SEND_F3,0B2,0RECV_B3,0B3,0REDUCE_GRAD,REDUCE_TIED,NORM,0OPT_STEP
  > 1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1RECV_F2,1F2,1B2,1SEND_B2,1RECV_F3,1B3,1SEND_B3,1REDUCE_GRAD,REDUCE_TIED,NORM,1OPT_STEP
  > END
  $ triax schedule --file rows.csv
  rows.csv:1: 0F3 is missing, the forward of stage 0, microbatch 3
  rows.csv:1:12: 0SEND_F3: it needs 0F3, which is not in the program
    add 0F3 before 0SEND_F3
  rows.csv:1:15: 0B3: it needs 0F3, which is not in the program
    add 0F3 before 0B3
  rows.csv:2: 1F3 is missing, the forward of stage 1, microbatch 3
  rows.csv:2:14: 1B3: it needs 1F3, which is not in the program
    add 1F3 before 1B3
  [1]

Without 1B2:

  $ cat > rows.csv << 'END'
  > 0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0F2,0RECV_B1,0SEND_F2,0B1,0F3,0RECV_B2,0SEND_F3,0B2,0RECV_B3,0B3,0REDUCE_GRAD,REDUCE_TIED,NORM,0OPT_STEP
  > 1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1RECV_F2,1F2,1SEND_B2,1RECV_F3,1F3,1B3,1SEND_B3,1REDUCE_GRAD,REDUCE_TIED,NORM,1OPT_STEP
  > END
  $ triax schedule --file rows.csv
  rows.csv:2: 1B2 is missing, the backward of stage 1, microbatch 2
  rows.csv:2:11: 1SEND_B2: it needs 1B2, which is not in the program
    add 1B2 before 1SEND_B2
  [1]

Without 0SEND_F2:

  $ cat > rows.csv << 'END'
  > 0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0F2,0RECV_B1,0B1,0F3,0RECV_B2,0SEND_F3,0B2,0RECV_B3,0B3,0REDUCE_GRAD,REDUCE_TIED,NORM,0OPT_STEP
  > 1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1RECV_F2,1F2,1B2,1SEND_B2,1RECV_F3,1F3,1B3,1SEND_B3,1REDUCE_GRAD,REDUCE_TIED,NORM,1OPT_STEP
  > END
  $ triax schedule --file rows.csv
  rows.csv:1: 0SEND_F2 is missing
  [1]

Without 1RECV_F2:

  $ cat > rows.csv << 'END'
  > 0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0F2,0RECV_B1,0SEND_F2,0B1,0F3,0RECV_B2,0SEND_F3,0B2,0RECV_B3,0B3,0REDUCE_GRAD,REDUCE_TIED,NORM,0OPT_STEP
  > 1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1F2,1B2,1SEND_B2,1RECV_F3,1F3,1B3,1SEND_B3,1REDUCE_GRAD,REDUCE_TIED,NORM,1OPT_STEP
  > END
  $ triax schedule --file rows.csv
  rows.csv:2:9: 1F2: it needs 1RECV_F2, which is not in the program
    add 1RECV_F2 before 1F2
  [1]

Without 0RECV_B0 and its send:

  $ cat > rows.csv << 'END'
  > 0F0,0SEND_F0,0F1,0SEND_F1,0F2,0SEND_F2,0B0,0RECV_B1,0B1,0RECV_B2,0B2,0REDUCE_GRAD,REDUCE_TIED,NORM,0OPT_STEP
  > 1RECV_F0,1F0,1SEND_F0,1RECV_F1,1F1,1SEND_F1,1RECV_F2,1RECV_B0,1B0,1F2,1RECV_B1,1SEND_F2,1B1,1SEND_B1,1RECV_B2,1B2,1SEND_B2,1REDUCE_GRAD,REDUCE_TIED,NORM,1OPT_STEP
  > 2RECV_F0,2F0,2RECV_F1,2B0,2SEND_B0,2F1,2B1,2SEND_B1,2RECV_F2,2F2,2B2,2SEND_B2,2REDUCE_GRAD,REDUCE_TIED,NORM,2OPT_STEP
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:7: 0B0: it needs 0RECV_B0, which is not in the program
    add 0RECV_B0 before 0B0
  rows.csv:2: 1SEND_B0 is missing
  [1]

1SEND_B1 twice:

  $ cat > rows.csv << 'END'
  > 0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0F2,0RECV_B1,0SEND_F2,0B1,0F3,0RECV_B2,0SEND_F3,0B2,0RECV_B3,0B3,0REDUCE_GRAD,REDUCE_TIED,NORM,0OPT_STEP
  > 1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1SEND_B1,1RECV_F2,1F2,1B2,1SEND_B2,1RECV_F3,1F3,1B3,1SEND_B3,1REDUCE_GRAD,REDUCE_TIED,NORM,1OPT_STEP
  > END
  $ triax schedule --file rows.csv
  rows.csv:2:9: 1SEND_B1: it is already at cell 8
  [1]

0SEND_F3 before 0F3:

  $ cat > rows.csv << 'END'
  > 0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0F2,0RECV_B1,0SEND_F3,0B1,0F3,0RECV_B2,0SEND_F2,0B2,0RECV_B3,0B3,0REDUCE_GRAD,REDUCE_TIED,NORM,0OPT_STEP
  > 1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1RECV_F2,1F2,1B2,1SEND_B2,1RECV_F3,1F3,1B3,1SEND_B3,1REDUCE_GRAD,REDUCE_TIED,NORM,1OPT_STEP
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:9: 0SEND_F3: it needs 0F3, which comes later, at cell 11
    move 0F3 before 0SEND_F3
  [1]

1RECV_F1 after 1F1:

  $ cat > rows.csv << 'END'
  > 0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0F2,0RECV_B1,0SEND_F2,0B1,0F3,0RECV_B2,0SEND_F3,0B2,0RECV_B3,0B3,0REDUCE_GRAD,REDUCE_TIED,NORM,0OPT_STEP
  > 1RECV_F0,1F0,1B0,1SEND_B0,1F1,1RECV_F1,1B1,1SEND_B1,1RECV_F2,1F2,1B2,1SEND_B2,1RECV_F3,1F3,1B3,1SEND_B3,1REDUCE_GRAD,REDUCE_TIED,NORM,1OPT_STEP
  > END
  $ triax schedule --file rows.csv
  rows.csv:2:5: 1F1: it needs 1RECV_F1, which comes later, at cell 6
    move 1RECV_F1 before 1F1
  [1]

0RECV_B0 before the forward that leads to it:

  $ cat > rows.csv << 'END'
  > 0RECV_B0,0F0,0F1,0SEND_F0,0SEND_F1,0B0,0F2,0RECV_B1,0SEND_F2,0B1,0F3,0RECV_B2,0SEND_F3,0B2,0RECV_B3,0B3,0REDUCE_GRAD,REDUCE_TIED,NORM,0OPT_STEP
  > 1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1RECV_F2,1F2,1B2,1SEND_B2,1RECV_F3,1F3,1B3,1SEND_B3,1REDUCE_GRAD,REDUCE_TIED,NORM,1OPT_STEP
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:1: 0RECV_B0: deadlock (a -> b: a waits for b): 0RECV_B0 (line 1, cell 1) -> 1SEND_B0 (line 2, cell 5) -> 1B0 (line 2, cell 4) -> 1F0 (line 2, cell 2) -> 1RECV_F0 (line 2, cell 1) -> 0SEND_F0 (line 1, cell 4) -> 0F1 (line 1, cell 3) -> 0F0 (line 1, cell 2) -> 0RECV_B0; assumed: one queue per rank shared with the layers, rendezvous sends, blocking posts
    use a file with only the compute actions: Triax adds the transfers in an order without deadlock
  [1]

Receives in the wrong places:

  $ cat > rows.csv << 'END'
  > 0F0,0SEND_F0,0F1,0SEND_F1,0F2,0SEND_F2,0RECV_B0,0B0,0RECV_B1,0B1,0RECV_B2,0B2,0REDUCE_GRAD,REDUCE_TIED,NORM,0OPT_STEP
  > 1RECV_F0,1F0,1SEND_F0,1RECV_F1,1F1,1SEND_F1,1RECV_F2,1RECV_B0,1B0,1SEND_B0,1F2,1RECV_B1,1SEND_F2,1B1,1SEND_B1,1RECV_B2,1B2,1SEND_B2,1REDUCE_GRAD,REDUCE_TIED,NORM,1OPT_STEP
  > 2RECV_F1,2F0,2RECV_F0,2B0,2SEND_B0,2F1,2B1,2SEND_B1,2RECV_F2,2F2,2B2,2SEND_B2,2REDUCE_GRAD,REDUCE_TIED,NORM,2OPT_STEP
  > END
  $ triax schedule --file rows.csv
  rows.csv:3:2: 2F0: it needs 2RECV_F0, which comes later, at cell 3
    move 2RECV_F0 before 2F0
  [1]

A send of the last stage:

  $ cat > rows.csv << 'END'
  > 0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0F2,0RECV_B1,0SEND_F2,0B1,0F3,0RECV_B2,0SEND_F3,0B2,0RECV_B3,0B3,0REDUCE_GRAD,REDUCE_TIED,NORM,0OPT_STEP
  > 1RECV_F0,1F0,1SEND_F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1RECV_F2,1F2,1B2,1SEND_B2,1RECV_F3,1F3,1B3,1SEND_B3,1REDUCE_GRAD,REDUCE_TIED,NORM,1OPT_STEP
  > END
  $ triax schedule --file rows.csv
  rows.csv:2:3: 1SEND_F0: stage 1 is the last stage, so it has no receiver
  [1]

A receive of the first stage:

  $ cat > rows.csv << 'END'
  > 0RECV_F0,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0F2,0RECV_B1,0SEND_F2,0B1,0F3,0RECV_B2,0SEND_F3,0B2,0RECV_B3,0B3,0REDUCE_GRAD,REDUCE_TIED,NORM,0OPT_STEP
  > 1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1RECV_F2,1F2,1B2,1SEND_B2,1RECV_F3,1F3,1B3,1SEND_B3,1REDUCE_GRAD,REDUCE_TIED,NORM,1OPT_STEP
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:1: 0RECV_F0: stage 0 is the first stage, so it has no sender
  [1]

A send to its own rank:

  $ cat > rows.csv << 'END'
  > 0F0,0SEND_F0,0F1,0SEND_F1,3RECV_F0,3F0,3I0,3SEND_B0,3RECV_F1,3W0,3F1,3I1,0RECV_B0,3SEND_B1,3W1,3REDUCE_GRAD,0I0,0W0,0RECV_B1,0I1,0W1,0REDUCE_GRAD,REDUCE_TIED,NORM,0OPT_STEP,3OPT_STEP
  > 1RECV_F0,1F0,1SEND_F0,1RECV_F1,2RECV_F0,2F0,2SEND_F0,1F1,2F1,2RECV_B0,2SEND_F1,2I0,2W0,1I0,1SEND_B0,2RECV_B1,1W0,2I1,2W1,2REDUCE_GRAD,1I1,1SEND_B1,1W1,1REDUCE_GRAD,REDUCE_TIED,NORM,1OPT_STEP,2OPT_STEP
  > END
  $ triax schedule --file rows.csv
  rows.csv:2:3: 1SEND_F0: the stage after it is on the same rank
  rows.csv:2:5: 2RECV_F0: the stage before it is on the same rank
  [1]

Sends in another order than the receives:

  $ cat > rows.csv << 'END'
  > 0F0,0F1,0SEND_F1,0SEND_F0,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD,REDUCE_TIED,NORM,0OPT_STEP
  > 1RECV_F0,1RECV_F1,1F0,1F1,1B0,1SEND_B0,1B1,1SEND_B1,1REDUCE_GRAD,REDUCE_TIED,NORM,1OPT_STEP
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:3: 0SEND_F1: it is send 0 from rank 0 to rank 1, but receive 0 there is 1RECV_F0 (line 2, cell 1); both ends must use the same order
  [1]

Sends that cross:

  $ cat > rows.csv << 'END'
  > 0F0,0SEND_F0,0F1,0SEND_F1,0F2,0RECV_B0,0B0,0SEND_F2,0RECV_B1,0B1,0RECV_B2,0B2,0REDUCE_GRAD,REDUCE_TIED,NORM,0OPT_STEP
  > 1RECV_F0,1F0,1I0,1SEND_B0,1W0,1RECV_F1,1F1,1I1,1SEND_B1,1RECV_F2,1W1,1F2,1B2,1SEND_B2,1REDUCE_GRAD,REDUCE_TIED,NORM,1OPT_STEP
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:4: 0SEND_F1: deadlock (a -> b: a waits for b): 0SEND_F1 (line 1, cell 4) -> 1RECV_F1 (line 2, cell 6) -> 1W0 (line 2, cell 5) -> 1SEND_B0 (line 2, cell 4) -> 0RECV_B0 (line 1, cell 6) -> 0F2 (line 1, cell 5) -> 0SEND_F1; assumed: one queue per rank shared with the layers, rendezvous sends, blocking posts
    use a file with only the compute actions: Triax adds the transfers in an order without deadlock
  [1]

0W1 before 0W0:

  $ cat > rows.csv << 'END'
  > 0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0I0,0W1,0RECV_B1,0F2,0SEND_F2,0I1,0W0,0RECV_B2,0I2,0W2,0REDUCE_GRAD,REDUCE_TIED,NORM,0OPT_STEP
  > 1RECV_F0,1F0,1RECV_F1,1I0,1SEND_B0,1F1,1I1,1SEND_B1,1W0,1RECV_F2,1F2,1I2,1SEND_B2,1W1,1W2,1REDUCE_GRAD,REDUCE_TIED,NORM,1OPT_STEP
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:12: 0W0: the weight gradient of microbatch 1 came before, at cell 7; gradients of a stage are added in ascending order of microbatches, so that every schedule gives the same bits
  rows.csv:1:7: 0W1: it needs 0I1, which comes later, at cell 11
    move 0I1 before 0W1
  [1]

A reduction before the last backward:

  $ cat > rows.csv << 'END'
  > 0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0F2,0RECV_B1,0SEND_F2,0B1,0F3,0RECV_B2,0SEND_F3,0B2,0RECV_B3,0B3,0REDUCE_GRAD,REDUCE_TIED,NORM,0OPT_STEP
  > 1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1RECV_F2,1F2,1B2,1SEND_B2,1RECV_F3,1F3,1REDUCE_GRAD,1B3,1SEND_B3,REDUCE_TIED,NORM,1OPT_STEP
  > END
  $ triax schedule --file rows.csv
  rows.csv:2:15: 1REDUCE_GRAD: it needs 1B3, which comes later, at cell 16
    move 1B3 before 1REDUCE_GRAD
  [1]

Without a reduction:

  $ cat > rows.csv << 'END'
  > 0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0F2,0RECV_B1,0SEND_F2,0B1,0F3,0RECV_B2,0SEND_F3,0B2,0RECV_B3,0B3,0REDUCE_GRAD,REDUCE_TIED,NORM,0OPT_STEP
  > 1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1RECV_F2,1F2,1B2,1SEND_B2,1RECV_F3,1F3,1B3,1SEND_B3,REDUCE_TIED,NORM,1OPT_STEP
  > END
  $ triax schedule --file rows.csv
  rows.csv:2: 1REDUCE_GRAD is missing
  rows.csv:2:17: REDUCE_TIED: it needs REDUCE_GRAD, which is not in the program
  rows.csv:2:18: NORM: it needs REDUCE_GRAD, which is not in the program
  [1]

NORM before REDUCE_TIED:

  $ cat > rows.csv << 'END'
  > 0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0F2,0RECV_B1,0SEND_F2,0B1,0F3,0RECV_B2,0SEND_F3,0B2,0RECV_B3,0B3,0REDUCE_GRAD,NORM,REDUCE_TIED,0OPT_STEP
  > 1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1RECV_F2,1F2,1B2,1SEND_B2,1RECV_F3,1F3,1B3,1SEND_B3,1REDUCE_GRAD,REDUCE_TIED,NORM,1OPT_STEP
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:18: NORM: it needs REDUCE_TIED, which comes later, at cell 19
  [1]

Without OPT_STEP:

  $ cat > rows.csv << 'END'
  > 0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0F2,0RECV_B1,0SEND_F2,0B1,0F3,0RECV_B2,0SEND_F3,0B2,0RECV_B3,0B3,0REDUCE_GRAD,REDUCE_TIED,NORM
  > 1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1RECV_F2,1F2,1B2,1SEND_B2,1RECV_F3,1F3,1B3,1SEND_B3,1REDUCE_GRAD,REDUCE_TIED,NORM,1OPT_STEP
  > END
  $ triax schedule --file rows.csv
  rows.csv:1: 0OPT_STEP is missing
    a row of a lowered file ends with a 3REDUCE_GRAD for each of its stages, REDUCE_TIED, NORM, and a 3OPT_STEP for each of its stages
  [1]

OPT_STEP twice:

  $ cat > rows.csv << 'END'
  > 0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0F2,0RECV_B1,0SEND_F2,0B1,0F3,0RECV_B2,0SEND_F3,0B2,0RECV_B3,0B3,0REDUCE_GRAD,REDUCE_TIED,NORM,0OPT_STEP,0OPT_STEP
  > 1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1RECV_F2,1F2,1B2,1SEND_B2,1RECV_F3,1F3,1B3,1SEND_B3,1REDUCE_GRAD,REDUCE_TIED,NORM,1OPT_STEP
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:21: 0OPT_STEP: it is already at cell 20
  [1]

Without all that ends a step:

  $ cat > rows.csv << 'END'
  > 0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0F2,0RECV_B1,0SEND_F2,0B1,0F3,0RECV_B2,0SEND_F3,0B2,0RECV_B3,0B3
  > 1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1RECV_F2,1F2,1B2,1SEND_B2,1RECV_F3,1F3,1B3,1SEND_B3
  > END
  $ triax schedule --file rows.csv
  rows.csv:1: 0REDUCE_GRAD is missing
  rows.csv:1: 0OPT_STEP is missing
    a row of a lowered file ends with a 3REDUCE_GRAD for each of its stages, REDUCE_TIED, NORM, and a 3OPT_STEP for each of its stages
  rows.csv:2: 1REDUCE_GRAD is missing
  rows.csv:2: 1OPT_STEP is missing
    a row of a lowered file ends with a 3REDUCE_GRAD for each of its stages, REDUCE_TIED, NORM, and a 3OPT_STEP for each of its stages
  [1]

More microbatches in flight than --cap allows:

  $ cat > rows.csv << 'END'
  > 0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0F2,0RECV_B1,0SEND_F2,0B1,0F3,0RECV_B2,0SEND_F3,0B2,0RECV_B3,0B3,0REDUCE_GRAD,REDUCE_TIED,NORM,0OPT_STEP
  > 1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1RECV_F2,1F2,1B2,1SEND_B2,1RECV_F3,1F3,1B3,1SEND_B3,1REDUCE_GRAD,REDUCE_TIED,NORM,1OPT_STEP
  > END
  $ triax schedule --file rows.csv --cap 1
  rows.csv:1:3: 0F1: more than 1 microbatch chunk is in flight on its rank
  rows.csv:1:7: 0F2: more than 1 microbatch chunk is in flight on its rank
  rows.csv:1:11: 0F3: more than 1 microbatch chunk is in flight on its rank
    use --cap 2, or another schedule
  [1]

With gathered weights, but not those of stage 1:

  $ cat > rows.csv << 'END'
  > 0UNSHARD,0F0,0RESHARD,1F0,1B0,1REDUCE_GRAD,0UNSHARD,0B0,0RESHARD,0REDUCE_GRAD,REDUCE_TIED,NORM,0OPT_STEP,1OPT_STEP
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:4: 1F0: it has no slot of pool weights to read
    write a 3UNSHARD before the passes of stage 3 that read its weights (F, B, I, R), and a 3RESHARD after them; or remove all UNSHARD and RESHARD
  rows.csv:1:5: 1B0: it has no slot of pool weights to read
    write a 3UNSHARD before the passes of stage 3 that read its weights (F, B, I, R), and a 3RESHARD after them; or remove all UNSHARD and RESHARD
  [1]

With weights that are dropped, but never gathered:

  $ cat > rows.csv << 'END'
  > 0F0,0B0,0RESHARD,0REDUCE_GRAD,REDUCE_TIED,NORM,0OPT_STEP
  > END
  $ triax schedule --file rows.csv
  rows.csv:1:1: 0F0: it has no slot of pool weights to read
    write a 3UNSHARD before the passes of stage 3 that read its weights (F, B, I, R), and a 3RESHARD after them; or remove all UNSHARD and RESHARD
  rows.csv:1:2: 0B0: it has no slot of pool weights to read
    write a 3UNSHARD before the passes of stage 3 that read its weights (F, B, I, R), and a 3RESHARD after them; or remove all UNSHARD and RESHARD
  rows.csv:1:3: 0RESHARD: it has no slot of pool weights to read
    write a 3UNSHARD before the passes of stage 3 that read its weights (F, B, I, R), and a 3RESHARD after them; or remove all UNSHARD and RESHARD
  [1]

With recomputation that does not precede its backward:

  $ cat > rows.csv << 'END'
  > 0F0,0SEND_F0,0RECV_B0,0R0,0B0,0REDUCE_GRAD,REDUCE_TIED,NORM,0OPT_STEP
  > 1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD,REDUCE_TIED,NORM,1OPT_STEP
  > END
  $ triax schedule --file rows.csv
  rows.csv: p = 2, m = 1, v = 1; F and R take one unit of time, B two
  time    0              5
  rank 0 |F0|R0|     |B0   |
  rank 1    |F0|B0   |
  idle, of 6 units of time, by rank: 2 3
  peak of microbatches in flight, by rank: 1 1
  $ sed -i 's/0R0,0B0/0B0,0R0/' rows.csv
  $ triax schedule --file rows.csv
  rows.csv:1:4: 0B0: it needs 0R0, which comes later, at cell 5
    move 0R0 before 0B0
  rows.csv:1:5: 0R0: the next pass of the rank must be the backward of stage 0, microbatch 0, but there is none
  [1]

Given times are those of a simulation. In a program without R, a backward takes the time of R, too:

  $ cat > rows.csv << 'END'
  > 0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,REDUCE_TIED,NORM,0OPT_STEP
  > 1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD,REDUCE_TIED,NORM,1OPT_STEP
  > END
  $ times='--forward-ms 1 --input-ms 1 --weight-ms 1 --recompute-ms 1 --link-ms 0'
  $ triax simulate --file rows.csv $times | grep active
  active time 8 ms, the longest of a rank; work 4 ms
  bubble / active time 0.5; bubble / work 1
  $ drawn() { triax schedule --file rows.csv --format json $times | grep -o '"active":[0-9.]*'; }
  $ drawn
  "active":8.0
  $ sed -i 's/0B0/0R0,0B0/' rows.csv; drawn
  "active":7.0
  $ triax simulate --file rows.csv $times | grep active
  active time 7 ms, the longest of a rank; work 4 ms
  bubble / active time 0.4286; bubble / work 0.75
