# SPDX-License-Identifier: Apache-2.0

# triax bench comm over MPI

  $ [ -e "$BUILD/lib/triax/plugins/comm-ucx.so" ] && [ -e "$BUILD/lib/triax/plugins/comm-mpi.so" ] || exit 80

Ranks that triax starts; both sides are in the same processes:

  $ triax bench comm --plugin comm-ucx --vs comm-mpi --ranks 3 --sizes 12K --turn-ms 0.1 --rounds 4 --json > out.json
  $ python3 -c 'import json; o = json.load(open("out.json")); print(*[side["plugin"] for side in o["sides"]], o["ranks_are_threads"], len(o["sizes"]))'
  comm-ucx comm-mpi False 1

Open MPI sends its explanation of a failure to the launcher, which shows it:

  $ OMPI_MCA_btl=nosuch triax bench comm --plugin comm-mpi --sizes 4K --turn-ms 0.1 --rounds 1 > out 2> err
  [1]
  $ grep -o 'warning launcher: MPI, rank .*nosuch' err | sed -E 's/rank [01]/rank {rank}/' | sort -u
  warning launcher: MPI, rank {rank}: Component: nosuch

Ranks that mpirun starts:

  $ launch() { mpirun --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 "$@" < /dev/null; }
  $ launch -np 2 "$TRIAX" bench comm --plugin comm-mpi --vs comm-ucx --sizes 4K --turn-ms 0.1 --rounds 4 --json > out.json
  $ python3 -c 'import json; o = json.load(open("out.json")); print(*[side["plugin"] for side in o["sides"]], o["ranks"], len(o["sizes"]))'
  comm-mpi comm-ucx 2 1

Another number of ranks than mpirun has started; one rank prints it, and mpirun may write behind it:

  $ launch -np 2 "$TRIAX" bench comm --plugin comm-ucx --ranks 3 > out 2>&1
  [2]
  $ grep -o -e 'the launcher has .* --ranks is 3' -e 'start at least .* --ranks out' out
  the launcher has started 2 ranks, but --ranks is 3
  start at least 2 ranks, and leave --ranks out

Buffers that do not fit in the memory of the machine; one rank prints it:

  $ launch -np 2 "$TRIAX" bench comm --plugin comm-ucx --sizes 1000000G > out 2>&1
  [2]
  $ grep -o '^--sizes .* free memory' out | sed 's/has .* of/has {size} of/'
  --sizes 1000000G: the buffers of 2 ranks need 4.29 PB, but this machine has {size} of free memory
