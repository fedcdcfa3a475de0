# SPDX-License-Identifier: Apache-2.0

# triax bench comm, ranks as processes

  $ [ -e "$BUILD/lib/triax/plugins/comm-ucx.so" ] || exit 80
  $ figures() { sed -E -e 's/^machine  .*/machine  {machine}/' -e 's/[0-9]+(\.[0-9]+)?( %|e-[0-9]+)?/#/g' -e 's/ +/ /g' -e 's/(\[#, #\]) [AB-]/\1 {side}/' -e 's/; \{plugins.*//'; }

Two sides that differ in an option:

  $ triax bench comm --plugin comm-ucx --set comm.wait=yield --set-b comm.rndv_threshold=64K --ranks 3 --sizes 12K --op all_gather --turn-ms 0.1 --rounds 4 | figures
  all_gather of f#, # ranks as processes
  machine {machine}
  A comm-ucx {version}, wait = "yield"
  B comm-ucx {version}, rndv_threshold = #, wait = "yield"
  timing # rounds A B B A, turns of at least # ms; the measuring loop adds # us to a call
  
   size A us A algbw A busbw B us B algbw B busbw B/A # interval faster
   #K # # # # # # # [#, #] {side}
  
  A call takes as long as on its slowest rank. Bandwidths are in GB/s (#^# bytes). All results were correct.
  B/A: time of B / time of A. faster: the side that is faster by more than half a percent, with a confidence of #; -: none is shown.

Threads, because the other side needs that:

  $ triax bench comm --plugin comm-ucx --vs comm-local --sizes 4K --turn-ms 0.1 --rounds 4 | figures
  all_reduce of f#, # ranks as threads of one process
  machine {machine}
  A comm-ucx {version}, default options
  B comm-local {version}, default options
  timing # rounds A B B A, turns of at least # ms; the measuring loop adds # us to a call
  
   size A us A algbw A busbw B us B algbw B busbw B/A # interval faster
   #K # # # # # # # [#, #] {side}
  
  A call takes as long as on its slowest rank. Bandwidths are in GB/s (#^# bytes). All results were correct.
  B/A: time of B / time of A. faster: the side that is faster by more than half a percent, with a confidence of #; -: none is shown.

An option that is out of range, and one that does not exist:

  $ triax bench comm --plugin comm-ucx --set-b comm.wait=sometimes --set-b comm.rndv_treshold=64K
  --set-b comm.wait must be one of yield, spin or event, got "sometimes"
  --set-b comm.rndv_treshold: comm-ucx has no such option
    did you mean comm.rndv_threshold? triax plugins describe comm-ucx lists its options
  [2]

More ranks than this process may open files for:

  $ (ulimit -n 100; triax bench comm --plugin comm-ucx --ranks 40 --sizes 4K)
  a job server for 40 ranks opens up to 168 files; the limit of this process is 100
    ask the administrator to raise the hard limit of open files (ulimit -Hn)
  [2]

A launcher's number of ranks that contradicts --ranks is refused before this rank waits for others:

  $ export RANK=0 WORLD_SIZE=3 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500
  $ timeout -s KILL 60 "$TRIAX" bench comm --plugin comm-none --ranks 2 --timeout-s 3600
  the launcher has started 3 ranks, but --ranks is 2
    start at least 2 ranks, and leave --ranks out
  [2]
  $ unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT

A rank that is killed ends the measurement, and is named:

  $ "$TRIAX" bench comm --plugin comm-ucx --ranks 3 --sizes 64K --rounds 1000 --turn-ms 100 > out 2> err &
  $ launcher=$!
  $ for moment in $(seq 100); do rank=$(pgrep -P $launcher -f -- --rounds | sed -n 2p); [ -z "$rank" ] || break; sleep 0.1; done
  $ sleep 0.3; kill -KILL "$rank"
  $ wait $launcher
  [1]
  $ sed -E 's/rank [0-2]/rank {rank}/' err
  rank {rank} was lost: killed by signal 9 (Killed)

A signal ends it, and leaves no rank:

  $ "$TRIAX" bench comm --plugin comm-ucx --ranks 3 --sizes 64K --rounds 1000 --turn-ms 100 > out 2> err &
  $ launcher=$!
  $ for moment in $(seq 100); do ranks=$(pgrep -P $launcher -f -- --rounds) && [ "$(wc -w <<< "$ranks")" = 3 ] && break; sleep 0.1; done
  $ sleep 0.3; kill -TERM $launcher
  $ wait $launcher
  [143]
  $ kill -0 $ranks 2> /dev/null
  [1]
  $ cat err

A rank that is stopped: the message names the flag of the timeout, not the key of a run:

  $ "$TRIAX" bench comm --plugin comm-ucx --ranks 2 --sizes 64K --rounds 1000 --turn-ms 100 --timeout-s 1 > out 2> err &
  $ launcher=$!
  $ for moment in $(seq 100); do rank=$(pgrep -P $launcher -f -- --rounds | sed -n 2p); [ -z "$rank" ] || break; sleep 0.1; done
  $ sleep 0.3; kill -STOP "$rank"
  $ wait $launcher
  [1]
  $ sed -E 's/rank [01]/rank {rank}/' err
  rank {rank} was lost: no message from it for 1 s (--timeout-s): its process may be stopped, or its host or network down
