# SPDX-License-Identifier: Apache-2.0

# Schedules that the schedulers make

Four ranks and eight microbatches, as in figures 3 and 4 of SC'21 (arXiv 2104.04473): as a table, and as CSV.

GPipe:

  $ triax schedule --scheduler sched-gpipe --pipeline 4 --microbatches 8
  sched-gpipe: p = 4, m = 8, v = 1; F takes one unit of time, B two
  time    0              5              10             15             20             25             30
  rank 0 |F0|F1|F2|F3|F4|F5|F6|F7|                          |B0   |B1   |B2   |B3   |B4   |B5   |B6   |B7   |
  rank 1    |F0|F1|F2|F3|F4|F5|F6|F7|                 |B0   |B1   |B2   |B3   |B4   |B5   |B6   |B7   |
  rank 2       |F0|F1|F2|F3|F4|F5|F6|F7|        |B0   |B1   |B2   |B3   |B4   |B5   |B6   |B7   |
  rank 3          |F0|F1|F2|F3|F4|F5|F6|F7|B0   |B1   |B2   |B3   |B4   |B5   |B6   |B7   |
  idle, of 33 units of time, by rank: 9 9 9 9
  peak of microbatches in flight, by rank: 8 8 8 8
  $ triax schedule --scheduler sched-gpipe --pipeline 4 --microbatches 8 --format csv
  0F0,0F1,0F2,0F3,0F4,0F5,0F6,0F7,0B0,0B1,0B2,0B3,0B4,0B5,0B6,0B7
  1F0,1F1,1F2,1F3,1F4,1F5,1F6,1F7,1B0,1B1,1B2,1B3,1B4,1B5,1B6,1B7
  2F0,2F1,2F2,2F3,2F4,2F5,2F6,2F7,2B0,2B1,2B2,2B3,2B4,2B5,2B6,2B7
  3F0,3F1,3F2,3F3,3F4,3F5,3F6,3F7,3B0,3B1,3B2,3B3,3B4,3B5,3B6,3B7

1F1B:

  $ triax schedule --scheduler sched-1f1b --pipeline 4 --microbatches 8
  sched-1f1b: p = 4, m = 8, v = 1; F takes one unit of time, B two
  time    0              5              10             15             20             25             30
  rank 0 |F0|F1|F2|F3|                 |B0   |F4|B1   |F5|B2   |F6|B3   |F7|B4   |  |B5   |  |B6   |  |B7   |
  rank 1    |F0|F1|F2|           |B0   |F3|B1   |F4|B2   |F5|B3   |F6|B4   |F7|B5   |  |B6   |  |B7   |
  rank 2       |F0|F1|     |B0   |F2|B1   |F3|B2   |F4|B3   |F5|B4   |F6|B5   |F7|B6   |  |B7   |
  rank 3          |F0|B0   |F1|B1   |F2|B2   |F3|B3   |F4|B4   |F5|B5   |F6|B6   |F7|B7   |
  idle, of 33 units of time, by rank: 9 9 9 9
  peak of microbatches in flight, by rank: 4 3 2 1
  $ triax schedule --scheduler sched-1f1b --pipeline 4 --microbatches 8 --format csv
  0F0,0F1,0F2,0F3,0B0,0F4,0B1,0F5,0B2,0F6,0B3,0F7,0B4,0B5,0B6,0B7
  1F0,1F1,1F2,1B0,1F3,1B1,1F4,1B2,1F5,1B3,1F6,1B4,1F7,1B5,1B6,1B7
  2F0,2F1,2B0,2F2,2B1,2F3,2B2,2F4,2B3,2F5,2B4,2F6,2B5,2F7,2B6,2B7
  3F0,3B0,3F1,3B1,3F2,3B2,3F3,3B3,3F4,3B4,3F5,3B5,3F6,3B6,3F7,3B7

Interleaved 1F1B:

  $ triax schedule --scheduler sched-interleaved --pipeline 4 --microbatches 8 --chunks 2
  sched-interleaved: p = 4, m = 8, v = 2; F takes one unit of time, B two
  time    0                   5                   10                  15                  20                  25                  30                  35                  40                  45                  50                  55
  rank 0 |0F0|0F1|0F2|0F3|4F0|4F1|4F2|4F3|0F4|0F5|0F6|           |4B0    |0F7|4B1    |   |4F4|4B2    |4F5|4B3    |4F6|0B0    |4F7|0B1    |0B2    |   |0B3    |   |4B4    |   |4B5    |   |4B6    |   |4B7    |0B4    |0B5    |0B6    |0B7    |
  rank 1     |1F0|1F1|1F2|1F3|5F0|5F1|5F2|5F3|1F4|       |5B0    |1F5|5B1    |1F6|5B2    |1F7|5B3    |5F4|1B0    |5F5|1B1    |5F6|1B2    |5F7|1B3    |   |5B4    |   |5B5    |   |5B6    |   |5B7    |1B4    |1B5    |1B6    |1B7    |
  rank 2         |2F0|2F1|2F2|2F3|6F0|6F1|6F2|   |6B0    |6F3|6B1    |2F4|6B2    |2F5|6B3    |2F6|2B0    |2F7|2B1    |6F4|2B2    |6F5|2B3    |6F6|6B4    |6F7|6B5    |   |6B6    |   |6B7    |2B4    |2B5    |2B6    |2B7    |
  rank 3             |3F0|3F1|3F2|3F3|7F0|7B0    |7F1|7B1    |7F2|7B2    |7F3|7B3    |3F4|3B0    |3F5|3B1    |3F6|3B2    |3F7|3B3    |7F4|7B4    |7F5|7B5    |7F6|7B6    |7F7|7B7    |3B4    |3B5    |3B6    |3B7    |
  idle, of 57 units of time, by rank: 9 9 9 9
  peak of microbatch chunks in flight, by rank: 11 9 7 5
  $ triax schedule --scheduler sched-interleaved --pipeline 4 --microbatches 8 --chunks 2 --format csv
  0F0,0F1,0F2,0F3,4F0,4F1,4F2,4F3,0F4,0F5,0F6,4B0,0F7,4B1,4F4,4B2,4F5,4B3,4F6,0B0,4F7,0B1,0B2,0B3,4B4,4B5,4B6,4B7,0B4,0B5,0B6,0B7
  1F0,1F1,1F2,1F3,5F0,5F1,5F2,5F3,1F4,5B0,1F5,5B1,1F6,5B2,1F7,5B3,5F4,1B0,5F5,1B1,5F6,1B2,5F7,1B3,5B4,5B5,5B6,5B7,1B4,1B5,1B6,1B7
  2F0,2F1,2F2,2F3,6F0,6F1,6F2,6B0,6F3,6B1,2F4,6B2,2F5,6B3,2F6,2B0,2F7,2B1,6F4,2B2,6F5,2B3,6F6,6B4,6F7,6B5,6B6,6B7,2B4,2B5,2B6,2B7
  3F0,3F1,3F2,3F3,7F0,7B0,7F1,7B1,7F2,7B2,7F3,7B3,3F4,3B0,3F5,3B1,3F6,3B2,3F7,3B3,7F4,7B4,7F5,7B5,7F6,7B6,7F7,7B7,3B4,3B5,3B6,3B7

Breadth-first:

  $ triax schedule --scheduler sched-breadth-first --pipeline 4 --microbatches 8 --chunks 2
  sched-breadth-first: p = 4, m = 8, v = 2; F takes one unit of time, B two
  time    0                   5                   10                  15                  20                  25                  30                  35                  40                  45                  50                  55
  rank 0 |0F0|0F1|0F2|0F3|0F4|0F5|0F6|0F7|4F0|4F1|4F2|4F3|4F4|4F5|4F6|4F7|                                   |4B0    |4B1    |4B2    |4B3    |4B4    |4B5    |4B6    |4B7    |0B0    |0B1    |0B2    |0B3    |0B4    |0B5    |0B6    |0B7    |
  rank 1     |1F0|1F1|1F2|1F3|1F4|1F5|1F6|1F7|5F0|5F1|5F2|5F3|5F4|5F5|5F6|5F7|                       |5B0    |5B1    |5B2    |5B3    |5B4    |5B5    |5B6    |5B7    |1B0    |1B1    |1B2    |1B3    |1B4    |1B5    |1B6    |1B7    |
  rank 2         |2F0|2F1|2F2|2F3|2F4|2F5|2F6|2F7|6F0|6F1|6F2|6F3|6F4|6F5|6F6|6F7|           |6B0    |6B1    |6B2    |6B3    |6B4    |6B5    |6B6    |6B7    |2B0    |2B1    |2B2    |2B3    |2B4    |2B5    |2B6    |2B7    |
  rank 3             |3F0|3F1|3F2|3F3|3F4|3F5|3F6|3F7|7F0|7F1|7F2|7F3|7F4|7F5|7F6|7F7|7B0    |7B1    |7B2    |7B3    |7B4    |7B5    |7B6    |7B7    |3B0    |3B1    |3B2    |3B3    |3B4    |3B5    |3B6    |3B7    |
  idle, of 57 units of time, by rank: 9 9 9 9
  peak of microbatch chunks in flight, by rank: 16 16 16 16
  $ triax schedule --scheduler sched-breadth-first --pipeline 4 --microbatches 8 --chunks 2 --format csv
  0F0,0F1,0F2,0F3,0F4,0F5,0F6,0F7,4F0,4F1,4F2,4F3,4F4,4F5,4F6,4F7,4B0,4B1,4B2,4B3,4B4,4B5,4B6,4B7,0B0,0B1,0B2,0B3,0B4,0B5,0B6,0B7
  1F0,1F1,1F2,1F3,1F4,1F5,1F6,1F7,5F0,5F1,5F2,5F3,5F4,5F5,5F6,5F7,5B0,5B1,5B2,5B3,5B4,5B5,5B6,5B7,1B0,1B1,1B2,1B3,1B4,1B5,1B6,1B7
  2F0,2F1,2F2,2F3,2F4,2F5,2F6,2F7,6F0,6F1,6F2,6F3,6F4,6F5,6F6,6F7,6B0,6B1,6B2,6B3,6B4,6B5,6B6,6B7,2B0,2B1,2B2,2B3,2B4,2B5,2B6,2B7
  3F0,3F1,3F2,3F3,3F4,3F5,3F6,3F7,7F0,7F1,7F2,7F3,7F4,7F5,7F6,7F7,7B0,7B1,7B2,7B3,7B4,7B5,7B6,7B7,3B0,3B1,3B2,3B3,3B4,3B5,3B6,3B7

ZB-H1:

  $ triax schedule --scheduler sched-zb-h1 --pipeline 4 --microbatches 8
  sched-zb-h1: p = 4, m = 8, v = 1; F, I and W take one unit of time
  time    0              5              10             15             20             25
  rank 0 |F0|F1|F2|F3|        |I0|W0|F4|I1|W1|F5|I2|W2|F6|I3|W3|F7|I4|W4|I5|W5|I6|W6|I7|W7|
  rank 1    |F0|F1|F2|     |I0|F3|I1|W0|F4|I2|W1|F5|I3|W2|F6|I4|W3|F7|I5|W4|I6|W5|I7|W6|W7|
  rank 2       |F0|F1|  |I0|F2|I1|F3|I2|W0|F4|I3|W1|F5|I4|W2|F6|I5|W3|F7|I6|W4|I7|W5|W6|W7|
  rank 3          |F0|I0|F1|I1|F2|I2|F3|I3|W0|F4|I4|W1|F5|I5|W2|F6|I6|W3|F7|I7|W4|W5|W6|W7|
  idle, of 27 units of time, by rank: 3 3 3 3
  peak of microbatches in flight, by rank: 4 4 4 4
  $ triax schedule --scheduler sched-zb-h1 --pipeline 4 --microbatches 8 --format csv
  0F0,0F1,0F2,0F3,0I0,0W0,0F4,0I1,0W1,0F5,0I2,0W2,0F6,0I3,0W3,0F7,0I4,0W4,0I5,0W5,0I6,0W6,0I7,0W7
  1F0,1F1,1F2,1I0,1F3,1I1,1W0,1F4,1I2,1W1,1F5,1I3,1W2,1F6,1I4,1W3,1F7,1I5,1W4,1I6,1W5,1I7,1W6,1W7
  2F0,2F1,2I0,2F2,2I1,2F3,2I2,2W0,2F4,2I3,2W1,2F5,2I4,2W2,2F6,2I5,2W3,2F7,2I6,2W4,2I7,2W5,2W6,2W7
  3F0,3I0,3F1,3I1,3F2,3I2,3F3,3I3,3W0,3F4,3I4,3W1,3F5,3I5,3W2,3F6,3I6,3W3,3F7,3I7,3W4,3W5,3W6,3W7

ZB-H2:

  $ triax schedule --scheduler sched-zb-h2 --pipeline 4 --microbatches 8
  sched-zb-h2: p = 4, m = 8, v = 1; F, I and W take one unit of time
  time    0              5              10             15             20             25
  rank 0 |F0|F1|F2|F3|F4|F5|F6|I0|W0|F7|I1|W1|I2|W2|I3|W3|I4|W4|I5|W5|I6|W6|I7|W7|
  rank 1    |F0|F1|F2|F3|F4|I0|F5|I1|F6|I2|W0|F7|I3|W1|I4|W2|I5|W3|I6|W4|I7|W5|W6|W7|
  rank 2       |F0|F1|F2|I0|F3|I1|F4|I2|F5|I3|F6|I4|W0|F7|I5|W1|I6|W2|I7|W3|W4|W5|W6|W7|
  rank 3          |F0|I0|F1|I1|F2|I2|F3|I3|F4|I4|F5|I5|F6|I6|W0|F7|I7|W1|W2|W3|W4|W5|W6|W7|
  idle, of 27 units of time, by rank: 3 3 3 3
  peak of microbatches in flight, by rank: 7 7 7 7
  $ triax schedule --scheduler sched-zb-h2 --pipeline 4 --microbatches 8 --format csv
  0F0,0F1,0F2,0F3,0F4,0F5,0F6,0I0,0W0,0F7,0I1,0W1,0I2,0W2,0I3,0W3,0I4,0W4,0I5,0W5,0I6,0W6,0I7,0W7
  1F0,1F1,1F2,1F3,1F4,1I0,1F5,1I1,1F6,1I2,1W0,1F7,1I3,1W1,1I4,1W2,1I5,1W3,1I6,1W4,1I7,1W5,1W6,1W7
  2F0,2F1,2F2,2I0,2F3,2I1,2F4,2I2,2F5,2I3,2F6,2I4,2W0,2F7,2I5,2W1,2I6,2W2,2I7,2W3,2W4,2W5,2W6,2W7
  3F0,3I0,3F1,3I1,3F2,3I2,3F3,3I3,3F4,3I4,3F5,3I5,3F6,3I6,3W0,3F7,3I7,3W1,3W2,3W3,3W4,3W5,3W6,3W7

ZB-V:

  $ triax schedule --scheduler sched-zb-v --pipeline 4 --microbatches 8 --chunks 2
  sched-zb-v: p = 4, m = 8, v = 2; F, I and W take one unit of time
  time    0                   5                   10                  15                  20                  25                  30                  35                  40                  45                  50
  rank 0 |0F0|0F1|0F2|0F3|0F4|0F5|0F6|7F0|7I0|7W0|7F1|7I1|7W1|7F2|7I2|7W2|7F3|7I3|7W3|0F7|0I0|0W0|7F4|7I4|7W4|0I1|0W1|7F5|7I5|7W5|0I2|0W2|7F6|7I6|7W6|0I3|0W3|7F7|7I7|7W7|0I4|0W4|0I5|0W5|0I6|0W6|0I7|0W7|
  rank 1     |1F0|1F1|1F2|1F3|1F4|6F0|1F5|6F1|6I0|6W0|6F2|6I1|6W1|6F3|6I2|6W2|1F6|1I0|1W0|6F4|6I3|6W3|1F7|1I1|1W1|6F5|6I4|6W4|1I2|1W2|6F6|6I5|6W5|1I3|1W3|6F7|6I6|6W6|1I4|6I7|1I5|1W4|1I6|1W5|1I7|1W6|6W7|1W7|
  rank 2         |2F0|2F1|2F2|5F0|2F3|5F1|2F4|5F2|5I0|5W0|5F3|5I1|5W1|2F5|2I0|2W0|5F4|5I2|5W2|2F6|2I1|2W1|5F5|5I3|5W3|2F7|2I2|2W2|5F6|5I4|5W4|2I3|2W3|5F7|5I5|5W5|2I4|5I6|2I5|5I7|2I6|2W4|2I7|2W5|5W6|5W7|2W6|2W7|
  rank 3             |3F0|4F0|3F1|4F1|3F2|4F2|3F3|4F3|4I0|4W0|3F4|3I0|3W0|4F4|4I1|4W1|3F5|3I1|3W1|4F5|4I2|4W2|3F6|3I2|3W2|4F6|4I3|4W3|3F7|3I3|3W3|4F7|4I4|4W4|3I4|4I5|3I5|4I6|3I6|4I7|3I7|3W4|4W5|4W6|4W7|3W5|3W6|3W7|
  idle, of 51 units of time, by rank: 3 3 3 3
  peak of microbatch chunks in flight, by rank: 8 8 8 8
  $ triax schedule --scheduler sched-zb-v --pipeline 4 --microbatches 8 --chunks 2 --format csv
  0F0,0F1,0F2,0F3,0F4,0F5,0F6,7F0,7I0,7W0,7F1,7I1,7W1,7F2,7I2,7W2,7F3,7I3,7W3,0F7,0I0,0W0,7F4,7I4,7W4,0I1,0W1,7F5,7I5,7W5,0I2,0W2,7F6,7I6,7W6,0I3,0W3,7F7,7I7,7W7,0I4,0W4,0I5,0W5,0I6,0W6,0I7,0W7
  1F0,1F1,1F2,1F3,1F4,6F0,1F5,6F1,6I0,6W0,6F2,6I1,6W1,6F3,6I2,6W2,1F6,1I0,1W0,6F4,6I3,6W3,1F7,1I1,1W1,6F5,6I4,6W4,1I2,1W2,6F6,6I5,6W5,1I3,1W3,6F7,6I6,6W6,1I4,6I7,1I5,1W4,1I6,1W5,1I7,1W6,6W7,1W7
  2F0,2F1,2F2,5F0,2F3,5F1,2F4,5F2,5I0,5W0,5F3,5I1,5W1,2F5,2I0,2W0,5F4,5I2,5W2,2F6,2I1,2W1,5F5,5I3,5W3,2F7,2I2,2W2,5F6,5I4,5W4,2I3,2W3,5F7,5I5,5W5,2I4,5I6,2I5,5I7,2I6,2W4,2I7,2W5,5W6,5W7,2W6,2W7
  3F0,4F0,3F1,4F1,3F2,4F2,3F3,4F3,4I0,4W0,3F4,3I0,3W0,4F4,4I1,4W1,3F5,3I1,3W1,4F5,4I2,4W2,3F6,3I2,3W2,4F6,4I3,4W3,3F7,3I3,3W3,4F7,4I4,4W4,3I4,4I5,3I5,4I6,3I6,4I7,3I7,3W4,4W5,4W6,4W7,3W5,3W6,3W7

Fewer microbatches than ranks:

  $ triax schedule --scheduler sched-1f1b --pipeline 12 --microbatches 3
  sched-1f1b: p = 12, m = 3, v = 1; F takes one unit of time, B two
  time     0              5              10             15             20             25             30             35             40
  rank 0  |F0|F1|F2|                                                                                            |B0   |  |B1   |  |B2   |
  rank 1     |F0|F1|F2|                                                                                   |B0   |  |B1   |  |B2   |
  rank 2        |F0|F1|F2|                                                                          |B0   |  |B1   |  |B2   |
  rank 3           |F0|F1|F2|                                                                 |B0   |  |B1   |  |B2   |
  rank 4              |F0|F1|F2|                                                        |B0   |  |B1   |  |B2   |
  rank 5                 |F0|F1|F2|                                               |B0   |  |B1   |  |B2   |
  rank 6                    |F0|F1|F2|                                      |B0   |  |B1   |  |B2   |
  rank 7                       |F0|F1|F2|                             |B0   |  |B1   |  |B2   |
  rank 8                          |F0|F1|F2|                    |B0   |  |B1   |  |B2   |
  rank 9                             |F0|F1|F2|           |B0   |  |B1   |  |B2   |
  rank 10                               |F0|F1|     |B0   |F2|B1   |  |B2   |
  rank 11                                  |F0|B0   |F1|B1   |F2|B2   |
  idle, of 42 units of time, by rank: 33 33 33 33 33 33 33 33 33 33 33 33
  peak of microbatches in flight, by rank: 3 3 3 3 3 3 3 3 3 3 2 1
  $ triax schedule --scheduler sched-1f1b --pipeline 12 --microbatches 3 --format csv
  0F0,0F1,0F2,0B0,0B1,0B2
  1F0,1F1,1F2,1B0,1B1,1B2
  2F0,2F1,2F2,2B0,2B1,2B2
  3F0,3F1,3F2,3B0,3B1,3B2
  4F0,4F1,4F2,4B0,4B1,4B2
  5F0,5F1,5F2,5B0,5B1,5B2
  6F0,6F1,6F2,6B0,6B1,6B2
  7F0,7F1,7F2,7B0,7B1,7B2
  8F0,8F1,8F2,8B0,8B1,8B2
  9F0,9F1,9F2,9B0,9B1,9B2
  10F0,10F1,10B0,10F2,10B1,10B2
  11F0,11B0,11F1,11B1,11F2,11B2

One rank:

  $ triax schedule --scheduler sched-interleaved --pipeline 1 --microbatches 2 --chunks 4
  sched-interleaved: p = 1, m = 2, v = 4; F takes one unit of time, B two
  time    0                   5                   10                  15                  20
  rank 0 |0F0|1F0|2F0|3F0|3B0    |0F1|2B0    |1F1|1B0    |2F1|0B0    |3F1|3B1    |2B1    |1B1    |0B1    |
  idle, of 24 units of time, by rank: 0
  peak of microbatch chunks in flight, by rank: 4
  $ triax schedule --scheduler sched-interleaved --pipeline 1 --microbatches 2 --chunks 4 --format csv
  0F0,1F0,2F0,3F0,3B0,0F1,2B0,1F1,1B0,2F1,0B0,3F1,3B1,2B1,1B1,0B1
