# SPDX-License-Identifier: Apache-2.0

# comm-faulty

A communicator that wraps another one and injects faults into its calls.

  $ . "$TESTDIR/setup"
  $ faulty() { fault="$1"; shift; triax plugins test comm-faulty --set comm.inner=comm-local --set comm.fault="$fault" --ranks 3 --timeout-s "${timeout:-2}" "$@" > out.txt; echo "status $?"; sed -E -e 's/\([0-9]+ ms\)/(# ms)/' -e 's/hpp:[0-9]+\)/hpp:#)/' -e 's/rank [0-2]: timed out/rank #: timed out/' -e 's/(Killed\)); rank.*/\1/' out.txt; }

Faults that the contract allows:

  $ timeout=30
  $ faulty none --filter 'AllReduce.AddsInRankOrder:Counts.*'
  status 0
  [==========] 3 checks of comm-faulty, up to 3 ranks as threads
  [ RUN      ] AllReduce.AddsInRankOrder
  [       OK ] AllReduce.AddsInRankOrder (# ms)
  [ RUN      ] Counts.OfCollectivesFollowTheFormulas
  [       OK ] Counts.OfCollectivesFollowTheFormulas (# ms)
  [ RUN      ] Counts.OfTransfersAreTheirViews
  [       OK ] Counts.OfTransfersAreTheirViews (# ms)
  [==========] 3 checks ran (# ms)
  [  PASSED  ] 3 checks
  $ faulty delay --filter 'Post.*'
  status 0
  [==========] 5 checks of comm-faulty, up to 3 ranks as threads
  [ RUN      ] Post.DoesNotCompleteInsideTheCall
  [       OK ] Post.DoesNotCompleteInsideTheCall (# ms)
  [ RUN      ] Post.ReturnsWithoutThePeer
  [       OK ] Post.ReturnsWithoutThePeer (# ms)
  [ RUN      ] Post.BeginsAfterItsStream
  [       OK ] Post.BeginsAfterItsStream (# ms)
  [ RUN      ] Post.HoldsBackLaterItems
  [       OK ] Post.HoldsBackLaterItems (# ms)
  [ RUN      ] Post.MatchesByPostsAcrossStreams
  [       OK ] Post.MatchesByPostsAcrossStreams (# ms)
  [==========] 5 checks ran (# ms)
  [  PASSED  ] 5 checks
  $ faulty reorder --filter 'Exchange.OfACycleCompletes:Edge.*'
  status 0
  [==========] 3 checks of comm-faulty, up to 3 ranks as threads
  [ RUN      ] Exchange.OfACycleCompletes
  [       OK ] Exchange.OfACycleCompletes (# ms)
  [ RUN      ] Edge.TheKthSendMatchesTheKthReceive
  [       OK ] Edge.TheKthSendMatchesTheKthReceive (# ms)
  [ RUN      ] Edge.OrderIsThatOfThePosts
  [       OK ] Edge.OrderIsThatOfThePosts (# ms)
  [==========] 3 checks ran (# ms)
  [  PASSED  ] 3 checks

A lost call never completes:

  $ timeout=2
  $ faulty drop --filter 'AllReduce.WrapsIntegers' --set comm.rank=1 --set comm.at=1
  status 1
  [==========] 1 check of comm-faulty, up to 3 ranks as threads
  [ RUN      ] AllReduce.WrapsIntegers
    rank #: timed out
        another rank may be slow, lost, or waiting for something else; train.stall_timeout_s sets the timeout
    contract: [C20] Sums and maxima are exact if every partial result is exact in the type. Integers wrap. bf16 and f16 are added in fp32 and rounded once, if Reduction is rank_order. u8 moves, but cannot be reduced. (triax/communicator.hpp:#)
  [  FAILED  ] AllReduce.WrapsIntegers (# ms)
  [==========] 1 check ran (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 1 check:
  [  FAILED  ] AllReduce.WrapsIntegers [C20]
  $ faulty drop --filter 'Exchange.OfACycleCompletes' --set comm.rank=1 --set comm.at=1 | grep 'contract\|FAILED'
    contract: [C24] The transfers of one exchange() have no order among themselves, so a cycle of exchanges does not deadlock. An exchange without transfers completes. (triax/communicator.hpp:#)
  [  FAILED  ] Exchange.OfACycleCompletes (# ms)
  [  FAILED  ] 1 check:
  [  FAILED  ] Exchange.OfACycleCompletes [C24]

A flipped bit:

  $ faulty corrupt --filter 'Broadcast.*:Edge.TheKthSendMatchesTheKthReceive' --set comm.rank=1 --set comm.at=1
  status 1
  [==========] 2 checks of comm-faulty, up to 3 ranks as threads
  [ RUN      ] Broadcast.ComesFromEveryRoot
    rank 1: broadcast of 1 f32 in a group of 2 from member 0: element 0 is 5.03125, must be 5; 1 of 1 elements are wrong
    contract: [C18] broadcast gives the view of the root to all members. Every member may be the root. (triax/communicator.hpp:#)
  [  FAILED  ] Broadcast.ComesFromEveryRoot (# ms)
  [ RUN      ] Edge.TheKthSendMatchesTheKthReceive
    rank 1: receive 0 of an edge got the data of send 536870912
    contract: [C23] On an edge, which is (from, to, channel), the k-th posted send matches the k-th posted receive, on whatever streams they are. Channels are numbered from 0; with Order::tagged, there are at least 16. (triax/communicator.hpp:#)
  [  FAILED  ] Edge.TheKthSendMatchesTheKthReceive (# ms)
  [==========] 2 checks ran (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 2 checks:
  [  FAILED  ] Broadcast.ComesFromEveryRoot [C18]
  [  FAILED  ] Edge.TheKthSendMatchesTheKthReceive [C23]

A post that throws, and one that ends the process:

  $ faulty fail --filter 'AllToAll.*' --set comm.rank=1 --set comm.at=1
  status 1
  [==========] 1 check of comm-faulty, up to 3 ranks as threads
  [ RUN      ] AllToAll.Transposes
    rank 1: group tensor.0: injected fault: all_to_all is post 1: the connection to a peer is lost
        comm-faulty injects it: to run without it, set fault = "none" in the table that names comm-faulty
    contract: [C17] all_to_all gives part i of `in` to member i, as part number rank() of its `out`. It is never in place. (triax/communicator.hpp:#)
  [  FAILED  ] AllToAll.Transposes (# ms)
  [==========] 1 check ran (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 1 check:
  [  FAILED  ] AllToAll.Transposes [C17]
  $ faulty die --filter 'Counts.*' --set comm.rank=1 --set comm.at=2
  status 1
  [==========] 2 checks of comm-faulty, up to 3 ranks as threads
  [ RUN      ] Counts.OfCollectivesFollowTheFormulas
    the check was killed by SIGKILL (Killed)
    contract: [C28] stats().ops counts posts. bytes_out and bytes_in count payload that crosses between ranks: of transfers the bytes of their views, of collectives payload_of(). An all_reduce of less than 64 KiB may count more. (triax/communicator.hpp:#)
  [  FAILED  ] Counts.OfCollectivesFollowTheFormulas (# ms)
  [ RUN      ] Counts.OfTransfersAreTheirViews
    the check was killed by SIGKILL (Killed)
    contract: [C28] stats().ops counts posts. bytes_out and bytes_in count payload that crosses between ranks: of transfers the bytes of their views, of collectives payload_of(). An all_reduce of less than 64 KiB may count more. (triax/communicator.hpp:#)
  [  FAILED  ] Counts.OfTransfersAreTheirViews (# ms)
  [==========] 2 checks ran (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 2 checks:
  [  FAILED  ] Counts.OfCollectivesFollowTheFormulas [C28]
  [  FAILED  ] Counts.OfTransfersAreTheirViews [C28]
  $ faulty hang_post --filter 'AllToAll.*' --set comm.rank=1 --set comm.at=1
  status 1
  [==========] 1 check of comm-faulty, up to 3 ranks as threads
  [ RUN      ] AllToAll.Transposes
    the check did not return within 8 s; rank 1 in all_to_all()
    contract: [C17] all_to_all gives part i of `in` to member i, as part number rank() of its `out`. It is never in place. (triax/communicator.hpp:#)
  [  FAILED  ] AllToAll.Transposes (# ms)
  [==========] 1 check ran (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 1 check:
  [  FAILED  ] AllToAll.Transposes [C17]
  $ faulty hang_join --filter 'Join.GivesSizeAndIndex' --set comm.rank=1
  status 1
  [==========] 1 check of comm-faulty, up to 3 ranks as threads
  [ RUN      ] Join.GivesSizeAndIndex
    the check did not return within 8 s; rank 1 in join()
    contract: [C2] join() returns when all members of the group have called it, and gives a communicator with the group's size and this member's index. Members join their groups in one order. (triax/communicator.hpp:#)
  [  FAILED  ] Join.GivesSizeAndIndex (# ms)
  [==========] 1 check ran (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 1 check:
  [  FAILED  ] Join.GivesSizeAndIndex [C2]

What cannot be wrapped is refused:

  $ triax plugins test comm-faulty
  plugin {plugins}/comm-faulty.so: comm.inner is missing (the communicator that it wraps: a name, or the path of its file)
    add --set comm.inner=VALUE
  [2]
  $ triax plugins test comm-faulty --set comm.inner=comm-locla 2>&1 | sed 's/ or "comm-nccl"//' # which not every build has
  {plugins}/comm-faulty.so: comm-faulty could not be created: plugin "comm-locla" was not found; did you mean "comm-local"?
    looked in: {plugins}
    installed communicators: {names}
    correct the name, or name the plugin's folder with TRIAX_PLUGIN_PATH
  $ triax plugins test comm-faulty --set comm.inner=sched-gpipe
  {plugins}/comm-faulty.so: comm-faulty could not be created: {plugins}/sched-gpipe.so: sched-gpipe is a plugin of kind scheduler; kind communicator is needed
    change its options, which triax plugins describe comm-faulty lists, or report this to its author
  [2]
  $ triax plugins test comm-faulty --set comm.inner=./none.so
  {plugins}/comm-faulty.so: comm-faulty could not be created: ./none.so: no such file
    triax plugins list shows the plugins that are found by name
  [2]
  $ triax plugins test comm-faulty --set comm.inner=comm-faulty
  {plugins}/comm-faulty.so: comm-faulty could not be created: comm-faulty requires its option inner: the communicator that it wraps: a name, or the path of its file
    add the setting inner=VALUE
  [2]
  $ triax plugins test comm-faulty --set comm.inner=comm-ucx --set 'comm.inner_options=["wiat=spin"]'
  {plugins}/comm-faulty.so: comm-faulty could not be created: comm-ucx has no option "wiat"; did you mean "wait"?
    triax plugins describe comm-ucx lists its options
  [2]
  $ triax plugins test comm-faulty --set comm.inner=comm-ucx --set 'comm.inner_options=["wait=often"]'
  {plugins}/comm-faulty.so: comm-faulty could not be created: comm-ucx: wait must be one of yield, spin or event, got "often"
    triax plugins describe comm-ucx lists its options
  [2]
  $ triax plugins test comm-faulty --set comm.inner=comm-ucx --set 'comm.inner_options=["staging_bytes=-1"]'
  {plugins}/comm-faulty.so: comm-faulty could not be created: comm-ucx: staging_bytes must be in [0, 1000000000000], got -1
    triax plugins describe comm-ucx lists its options
  [2]
  $ triax plugins test comm-faulty --set comm.inner=comm-ucx --set 'comm.inner_options=["staging_bytes=x"]'
  {plugins}/comm-faulty.so: comm-faulty could not be created: comm-ucx: staging_bytes = x is not an integer
    triax plugins describe comm-ucx lists its options
  [2]
  $ triax plugins test comm-faulty --set comm.inner=comm-ucx --set 'comm.inner_options=["spin"]'
  {plugins}/comm-faulty.so: comm-faulty could not be created: a setting of comm-ucx must be KEY=VALUE, got "spin"
    triax plugins describe comm-ucx lists its options
  [2]
  $ triax plugins test comm-faulty --set comm.inner=comm-local --set comm.at=3 --set comm.probability=0.5
  {plugins}/comm-faulty.so: comm-faulty could not be created: at = 3 selects one post, but probability = 0.5 selects posts at random
    leave one of them out
  [2]
  $ triax plugins test comm-faulty --set comm.inner=comm-local --set comm.fault=refuse
  comm-faulty: fault = "refuse" refuses every run
    choose another fault
  [2]
  $ triax plugins test comm-faulty --set comm.inner=comm-local --set comm.rank=7 --set comm.axis=data
  comm-faulty: rank = 7: the run has 5 ranks, counted from 0
    choose one of them, or -1 for all
  comm-faulty: axis = "data" is not an axis that it serves in this run
    choose one of tensor, or leave axis out
  [2]
  $ triax plugins test comm-faulty --set comm.inner=comm-local --processes
  comm-faulty: comm-local joins ranks that are threads of one process; this run's ranks are processes
  [2]

Faults in faults, and a plugin in a folder of `--path`:

  $ faulty none --filter 'AllReduce.WrapsIntegers' --set comm.inner=comm-faulty --set 'comm.inner_options=["inner=comm-local", "fault=fail", "rank=1", "at=1"]'
  status 1
  [==========] 1 check of comm-faulty, up to 3 ranks as threads
  [ RUN      ] AllReduce.WrapsIntegers
    rank 1: group tensor.0: injected fault: all_reduce is post 1: the connection to a peer is lost
        comm-faulty injects it: to run without it, set fault = "none" in the table that names comm-faulty
    contract: [C20] Sums and maxima are exact if every partial result is exact in the type. Integers wrap. bf16 and f16 are added in fp32 and rounded once, if Reduction is rank_order. u8 moves, but cannot be reduced. (triax/communicator.hpp:#)
  [  FAILED  ] AllReduce.WrapsIntegers (# ms)
  [==========] 1 check ran (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 1 check:
  [  FAILED  ] AllReduce.WrapsIntegers [C20]
  $ triax plugins test comm-faulty --set comm.inner=comm-planted --filter 'AllReduce.WrapsIntegers' --path $BUILD/tests/conformance/plugins | grep -c OK
  1

In a run, refusals and errors name the table:

  $ triax check base.toml --set parallel.tensor=2 --set comm.plugin=comm-faulty --set comm.inner=comm-local --set comm.fault=refuse
  --set: comm.plugin "comm-faulty" for the tensor axis: fault = "refuse" refuses every run
    comm.plugin is set by --set
    choose another fault
  [2]
  $ triax check base.toml --set comm.plugin=comm-faulty --set comm.inner=comm-locla 2>&1 | sed 's/ or "comm-nccl"//'
  --set: comm.plugin "comm-faulty": {plugins}/comm-faulty.so: comm-faulty could not be created: plugin "comm-locla" was not found; did you mean "comm-local"?
    looked in: {plugins}
    installed communicators: {names}
    correct the name, or name the plugin's folder with TRIAX_PLUGIN_PATH
