# SPDX-License-Identifier: Apache-2.0

# triax plugins test, with planted faults of communicators

comm-planted is comm-local with one fault. The report names the values and the clause.

  $ times() { sed -E -e 's/\([0-9]+ ms\)/(# ms)/' -e 's/hpp:[0-9]+\)/hpp:#)/' -e 's/called exit\(1\); rank.*ABORTING.*/crashed with SIGSEGV (Segmentation fault)/' -e 's/(SEGV.*\)|exit\(3\)); rank.*/\1/'; }
  $ planted=$BUILD/tests/conformance/plugins/comm-planted.so
  $ planted() { triax plugins test "$planted" --set comm.fault="$1" --filter "$2" --ranks 3 --timeout-s "${3:-2}" > out.txt; echo "status $?"; times < out.txt | grep -v '^\[==='; }

The wrong order of addition, always and in every second call:

  $ planted order 'AllReduce.AddsInRankOrder'
  status 1
  [ RUN      ] AllReduce.AddsInRankOrder
    rank 0: all_reduce of 64 f32 (sum) in a group of 3: element 7 is -19.437187, must be -19.437185; 17 of 64 elements are wrong
    rank 0: all_reduce of 64 f32 (sum) in a group of 3, in place: element 7 is -19.437187, must be -19.437185; 17 of 64 elements are wrong
    rank 0: all_reduce of 1501 f32 (sum) in a group of 3: element 7 is -19.437187, must be -19.437185; 336 of 1501 elements are wrong
    rank 1: all_reduce of 64 f32 (sum) in a group of 3: element 7 is -19.437187, must be -19.437185; 17 of 64 elements are wrong
    rank 1: all_reduce of 64 f32 (sum) in a group of 3, in place: element 7 is -19.437187, must be -19.437185; 17 of 64 elements are wrong
    rank 1: all_reduce of 1501 f32 (sum) in a group of 3: element 7 is -19.437187, must be -19.437185; 336 of 1501 elements are wrong
    rank 2: all_reduce of 64 f32 (sum) in a group of 3: element 7 is -19.437187, must be -19.437185; 17 of 64 elements are wrong
    rank 2: all_reduce of 64 f32 (sum) in a group of 3, in place: element 7 is -19.437187, must be -19.437185; 17 of 64 elements are wrong
    rank 2: all_reduce of 1501 f32 (sum) in a group of 3: element 7 is -19.437187, must be -19.437185; 336 of 1501 elements are wrong
    and 51 more
    contract: [C21] Reduction::rank_order: a sum has the bits of ((x0 + x1) + x2) + ... in the order of the group. (triax/communicator.hpp:#)
  [  FAILED  ] AllReduce.AddsInRankOrder (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 1 check:
  [  FAILED  ] AllReduce.AddsInRankOrder [C21]
  $ planted scatter_order 'ReduceScatter.*InRepeats' | grep 'contract\|FAILED'
    contract: [C22] Reduction::rank_order and fixed: repeated calls give equal bits, whatever else is in flight. (triax/communicator.hpp:#)
  [  FAILED  ] ReduceScatter.GivesTheSameBitsInRepeats (# ms)
  [  FAILED  ] 1 check:
  [  FAILED  ] ReduceScatter.GivesTheSameBitsInRepeats [C22]

A collective that throws, and one that leaves out an element:

  $ planted throws 'AllToAll.*' | sed 's/rank [01]:/rank #:/'
  status 1
  [ RUN      ] AllToAll.Transposes
    rank #: all_to_all fails
    contract: [C17] all_to_all gives part i of `in` to member i, as part number rank() of its `out`. It is never in place. (triax/communicator.hpp:#)
  [  FAILED  ] AllToAll.Transposes (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 1 check:
  [  FAILED  ] AllToAll.Transposes [C17]
  $ planted element 'AllReduce.IsExact*'
  status 1
  [ RUN      ] AllReduce.IsExactForEveryTypeAndSize
    rank 0: all_reduce of 1501 f32 (sum) in a group of 2: element 1500 is 0, must be -27; 1 of 1501 elements are wrong
    rank 0: all_reduce of 1501 f32 (sum) in a group of 2, in place: element 1500 is -12, must be -27; 1 of 1501 elements are wrong
    rank 0: all_reduce of 20003 f32 (sum) in a group of 2: element 20002 is 0, must be 12; 1 of 20003 elements are wrong
    rank 1: all_reduce of 1501 f32 (sum) in a group of 2: element 1500 is 0, must be -27; 1 of 1501 elements are wrong
    rank 1: all_reduce of 1501 f32 (sum) in a group of 2, in place: element 1500 is -15, must be -27; 1 of 1501 elements are wrong
    rank 1: all_reduce of 20003 f32 (sum) in a group of 2: element 20002 is 0, must be 12; 1 of 20003 elements are wrong
    and 82 more
    contract: [C20] Sums and maxima are exact if every partial result is exact in the type. Integers wrap. bf16 and f16 are added in fp32 and rounded once, if Reduction is rank_order. u8 moves, but cannot be reduced. (triax/communicator.hpp:#)
  [  FAILED  ] AllReduce.IsExactForEveryTypeAndSize (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 1 check:
  [  FAILED  ] AllReduce.IsExactForEveryTypeAndSize [C20]
  $ planted root 'Broadcast.*'
  status 1
  [ RUN      ] Broadcast.ComesFromEveryRoot
    rank 0: broadcast of 1 f32 in a group of 2 from member 0: element 0 is -6, must be 5; 1 of 1 elements are wrong
    rank 0: broadcast of 33 f32 in a group of 2 from member 0: element 0 is -6, must be 5; 29 of 33 elements are wrong
    rank 0: broadcast of 20003 f32 in a group of 2 from member 0: element 0 is -6, must be 5; 19482 of 20003 elements are wrong
    rank 1: broadcast of 1 f32 in a group of 2 from member 0: element 0 is -6, must be 5; 1 of 1 elements are wrong
    rank 1: broadcast of 33 f32 in a group of 2 from member 0: element 0 is -6, must be 5; 29 of 33 elements are wrong
    rank 1: broadcast of 20003 f32 in a group of 2 from member 0: element 0 is -6, must be 5; 19482 of 20003 elements are wrong
    and 78 more
    contract: [C18] broadcast gives the view of the root to all members. Every member may be the root. (triax/communicator.hpp:#)
  [  FAILED  ] Broadcast.ComesFromEveryRoot (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 1 check:
  [  FAILED  ] Broadcast.ComesFromEveryRoot [C18]

Calls that end, begin or complete at the wrong time:

  $ planted completes_inside 'Post.DoesNot*'
  status 1
  [ RUN      ] Post.DoesNotCompleteInsideTheCall
    rank 0: the event of an all_reduce fired inside the call
    rank 1: the event of an all_reduce fired inside the call
    contract: [C6] A post returns without waiting for other members, and its event does not fire inside the call. Work::action is the action that was given. Only the first transfer between two members may wait for the peer's post, if a library connects them then (NCCL). (triax/communicator.hpp:#)
  [  FAILED  ] Post.DoesNotCompleteInsideTheCall (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 1 check:
  [  FAILED  ] Post.DoesNotCompleteInsideTheCall [C6]
  $ planted empty_completes_inside 'Post.DoesNot*' | grep 'rank\|FAILED'
    rank 0: the event of exchange with parts of 0 elements fired inside the call
    rank 1: the event of exchange with parts of 0 elements fired inside the call
  [  FAILED  ] Post.DoesNotCompleteInsideTheCall (# ms)
  [  FAILED  ] 1 check:
  [  FAILED  ] Post.DoesNotCompleteInsideTheCall [C6]
  $ planted ignores_stream 'Post.BeginsAfter*' | grep -v 'completed before' | sed 's/gives [01], must/gives #, must/'
  status 1
  [ RUN      ] Post.BeginsAfterItsStream
    rank 0: an all_reduce of ones gives #, must be 2: the buffer was read before the call's turn
    rank 1: an all_reduce of ones gives #, must be 2: the buffer was read before the call's turn
    contract: [C7] A call begins when all earlier items of its stream have finished; until then it reads and writes no buffer. (triax/communicator.hpp:#)
  [  FAILED  ] Post.BeginsAfterItsStream (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 1 check:
  [  FAILED  ] Post.BeginsAfterItsStream [C7]
  $ planted sends_copy 'Post.BeginsAfter*' | grep 'rank\|FAILED'
    rank 0: exchange in a group of 2: element 0 of `out` is 0, must be 2: a buffer was used before the call's turn
    rank 0: exchange in a group of 2: element 0 of `out` is 0, must be 2: a buffer was used before the call's turn
    rank 1: exchange in a group of 2: element 0 of `out` is 0, must be 1: a buffer was used before the call's turn
  [  FAILED  ] Post.BeginsAfterItsStream (# ms)
  [  FAILED  ] 1 check:
  [  FAILED  ] Post.BeginsAfterItsStream [C7]
  $ planted buffered 'Send.Buffered*' | sed 's/rank [01]:/rank #:/'
  status 1
  [ RUN      ] Send.BufferedCompletesWithoutItsReceive
    rank #: timed out
        another rank may be slow, lost, or waiting for something else; train.stall_timeout_s sets the timeout
    contract: [C26] Send::buffered: a send of up to buffered_bytes completes although its receive is not posted. Send::rendezvous: it may wait for the receive; a program may not rely on either. (triax/communicator.hpp:#)
  [  FAILED  ] Send.BufferedCompletesWithoutItsReceive (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 1 check:
  [  FAILED  ] Send.BufferedCompletesWithoutItsReceive [C26]

Channels, counts and allocations:

  $ planted channels 'Channel.*'
  status 1
  [ RUN      ] Channel.ReceivesWhatItSends
    rank 1: channel 0 received what channel 7 sent
    rank 1: channel 1 received what channel 6 sent
    rank 1: channel 2 received what channel 5 sent
    and 5 more
    contract: [C23] On an edge, which is (from, to, channel), the k-th posted send matches the k-th posted receive, on whatever streams they are. Channels are numbered from 0; with Order::tagged, there are at least 16. (triax/communicator.hpp:#)
  [  FAILED  ] Channel.ReceivesWhatItSends (# ms)
  [ RUN      ] Channel.WaitsForNoOther
    rank 1: channels 3 and 15 received 20 and 10, must be 10 and 20
    rank 1: channels 3 and 15 received 20 and 10, must be 10 and 20
    contract: [C25] Order::tagged: a transfer waits for no transfer of another edge. Order::channel and serial: transfers run in the order of their posts, on an edge or on the device, and the verifier ensures that both ends have one order. (triax/communicator.hpp:#)
  [  FAILED  ] Channel.WaitsForNoOther (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 2 checks:
  [  FAILED  ] Channel.ReceivesWhatItSends [C23]
  [  FAILED  ] Channel.WaitsForNoOther [C25]
  $ planted early_event 'Send.FreesItsView*' | sed 's/element [0-9]* is -1.*/element # is -1/' | grep -v '^    and'
  status 1
  [ RUN      ] Send.FreesItsViewWithItsEvent
    rank 1: a transfer of 1 i32, whose view the sender overwrites after its event: element # is -1
    rank 1: a transfer of 3000 i32, whose view the sender overwrites after its event: element # is -1
    rank 1: a transfer of 1310721 i32, whose view the sender overwrites after its event: element # is -1
    contract: [C8] Later items of the stream begin when the call is complete. When an event fires, the buffers hold the result, and the communicator accesses them no more. (triax/communicator.hpp:#)
  [  FAILED  ] Send.FreesItsViewWithItsEvent (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 1 check:
  [  FAILED  ] Send.FreesItsViewWithItsEvent [C8]
  $ planted mixed_types 'Mismatch.OfTransfers*' | sed 's/rank [01]:/rank #:/'
  status 1
  [ RUN      ] Mismatch.OfTransfersIsReportedToBoth
    rank #: a transfer of 6 f32, received as 5 f32 must fail with "6 f32"; the error is "group tensor.0, channel 4: rank 0 sends 24 u8 where rank 1 receives 20 u8"
    rank #: a transfer of 6 f32, received as 6 i32 must fail, but did not
    rank #: a transfer of 6 f32, received as 7 f32 must fail with "6 f32"; the error is "group tensor.0, channel 4: rank 0 sends 24 u8 where rank 1 receives 28 u8"
    rank #: a transfer of 6 f32, received as 5 f32 must fail with "6 f32"; the error is "group tensor.0, channel 4: rank 0 sends 24 u8 where rank 1 receives 20 u8"
    rank #: a transfer of 6 f32, received as 6 i32 must fail, but did not
    rank #: a transfer of 6 f32, received as 7 f32 must fail with "6 f32"; the error is "group tensor.0, channel 4: rank 0 sends 24 u8 where rank 1 receives 28 u8"
    and 6 more
    contract: [C33] Members that post different collectives, or transfers of different size or type, fail with a text that names both, as to_text(Collective) does ("all_reduce of 8 f32 (sum)") or by elements and type ("6 f32"), with their ranks ("rank 0"). A send that is complete before its receive is posted stays complete; its group fails. This does not hold for stream-ordered communicators. (triax/communicator.hpp:#)
  [  FAILED  ] Mismatch.OfTransfersIsReportedToBoth (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 1 check:
  [  FAILED  ] Mismatch.OfTransfersIsReportedToBoth [C33]
  $ planted bytes 'Counts.*'
  status 1
  [ RUN      ] Counts.OfCollectivesFollowTheFormulas
    rank 0: after all_gather: ops, bytes_out and bytes_in are 3, 320008 and 320008; must be 3, 320000 and 320000
    rank 1: after all_gather: ops, bytes_out and bytes_in are 3, 320008 and 320008; must be 3, 320000 and 320000
    contract: [C28] stats().ops counts posts. bytes_out and bytes_in count payload that crosses between ranks: of transfers the bytes of their views, of collectives payload_of(). An all_reduce of less than 64 KiB may count more. (triax/communicator.hpp:#)
  [  FAILED  ] Counts.OfCollectivesFollowTheFormulas (# ms)
  [ RUN      ] Counts.OfTransfersAreTheirViews
  [       OK ] Counts.OfTransfersAreTheirViews (# ms)
  [  PASSED  ] 1 check
  [  FAILED  ] 1 check:
  [  FAILED  ] Counts.OfCollectivesFollowTheFormulas [C28]
  $ planted refused_bytes 'Abort.RefusedPosts*'
  status 1
  [ RUN      ] Abort.RefusedPostsAreNotCounted
    rank 0: six refused posts counted 0 operations, 40 bytes out and 40 bytes in
    rank 1: six refused posts counted 0 operations, 40 bytes out and 40 bytes in
    contract: [C29] A post that is refused after an abort counts neither as an operation nor with its bytes. (triax/communicator.hpp:#)
  [  FAILED  ] Abort.RefusedPostsAreNotCounted (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 1 check:
  [  FAILED  ] Abort.RefusedPostsAreNotCounted [C29]
  $ planted allocates 'SteadyState.*'
  status 1
  [ RUN      ] SteadyState.DoesNotAllocate
    rank 0: 20 allocations in 20 steps of six calls, after 50 such steps
    rank 1: 20 allocations in 20 steps of six calls, after 50 such steps
    contract: [C13] In the steady state, posts and the progress loop do not allocate. (triax/communicator.hpp:#)
  [  FAILED  ] SteadyState.DoesNotAllocate (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 1 check:
  [  FAILED  ] SteadyState.DoesNotAllocate [C13]

Failures that do not reach all calls of all members:

  $ planted abort 'Abort.MayComeFromAnyThread'
  status 1
  [ RUN      ] Abort.MayComeFromAnyThread
    rank 0: the call of the other member must fail with "rank 1 aborted group tensor.0: the watchdog"; the error is "timed out
        another rank may be slow, lost, or waiting for something else; train.stall_timeout_s sets the timeout"
    contract: [C30] After abort(), all pending and later calls of all members fail soon with one text, that of the first abort: "rank 2 aborted group tensor.0: WHY". Any thread may call abort(), and it does not wait for other ranks. (triax/communicator.hpp:#)
  [  FAILED  ] Abort.MayComeFromAnyThread (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 1 check:
  [  FAILED  ] Abort.MayComeFromAnyThread [C30]
  $ planted wrong_order 'Abort.FailsCallsOutOfTurn'
  status 1
  [ RUN      ] Abort.FailsCallsOutOfTurn
    rank 0: an all_reduce that waits for its stream must fail with "enough"; the error is "timed out
        another rank may be slow, lost, or waiting for something else; train.stall_timeout_s sets the timeout"
    rank 0: an exchange that waits for its stream must fail with "enough"; the error is "timed out
        another rank may be slow, lost, or waiting for something else; train.stall_timeout_s sets the timeout"
    rank 1: an all_reduce that waits for its stream must fail with "enough"; the error is "timed out
        another rank may be slow, lost, or waiting for something else; train.stall_timeout_s sets the timeout"
    rank 1: an exchange that waits for its stream must fail with "enough"; the error is "timed out
        another rank may be slow, lost, or waiting for something else; train.stall_timeout_s sets the timeout"
    contract: [C32] After a failure, queued calls also fail, before they reach the front of their stream. (triax/communicator.hpp:#)
  [  FAILED  ] Abort.FailsCallsOutOfTurn (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 1 check:
  [  FAILED  ] Abort.FailsCallsOutOfTurn [C32]
  $ planted throws_after_abort 'Abort.LaterPosts*'
  status 1
  [ RUN      ] Abort.LaterPostsDoNotThrow
    rank 0: all_reduce after an abort throws "the group has been aborted", must return an event that fails
    rank 0: reduce_scatter after an abort throws "the group has been aborted", must return an event that fails
    rank 0: all_gather after an abort throws "the group has been aborted", must return an event that fails
    and 2 more
    contract: [C31] A post after the failure of the group does not throw: it returns an event that fails. barrier() throws. (triax/communicator.hpp:#)
  [  FAILED  ] Abort.LaterPostsDoNotThrow (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 1 check:
  [  FAILED  ] Abort.LaterPostsDoNotThrow [C31]
  $ planted barrier 'Barrier.Returns*' | grep 'contract\|FAILED'
    contract: [C36] barrier() returns when all members have called it. At its deadline it throws Error with the ranks that are missing ("rank 0"). It runs the progress loop, ends when the rank is aborted, and does not count time in which the process is stopped. (triax/communicator.hpp:#)
  [  FAILED  ] Barrier.ReturnsAfterAllMembersCame (# ms)
  [  FAILED  ] 1 check:
  [  FAILED  ] Barrier.ReturnsAfterAllMembersCame [C36]
  $ planted barrier_ignores_abort 'Barrier.Ends*' | grep 'contract\|FAILED'
    contract: [C36] barrier() returns when all members have called it. At its deadline it throws Error with the ranks that are missing ("rank 0"). It runs the progress loop, ends when the rank is aborted, and does not count time in which the process is stopped. (triax/communicator.hpp:#)
  [  FAILED  ] Barrier.EndsWhenTheRankIsAborted (# ms)
  [  FAILED  ] 1 check:
  [  FAILED  ] Barrier.EndsWhenTheRankIsAborted [C36]
  $ planted joined_traits 'Backend.*' | grep 'contract\|FAILED'
    contract: [C1] traits() and supports() may be called at any time after the constructor, and give the same answer each time. A backend that has joined no group can be started and destroyed: a group of one member is never joined. (triax/communicator.hpp:#)
  [  FAILED  ] Backend.AnswersTheSameEachTime (# ms)
  [  FAILED  ] 1 check:
  [  FAILED  ] Backend.AnswersTheSameEachTime [C1]
  $ planted joins_late 'Join.NamesTheMissingRanks' 0.5 | grep 'contract\|FAILED'
    contract: [C3] join() throws Error at its deadline, and its text names the ranks that are missing; the members that come later get an error, too. It runs the progress loop, and ends when the rank is aborted. Only in the first join() of a process may a library that initializes all processes together (MPI) wait longer. (triax/communicator.hpp:#)
  [  FAILED  ] Join.NamesTheMissingRanks (# ms)
  [  FAILED  ] 1 check:
  [  FAILED  ] Join.NamesTheMissingRanks [C3]
  $ planted joins_without_names 'Join.NamesTheMissingRanks' | grep 'must name\|FAILED'
    rank 0: join() of the only member must name the missing rank 1; the error is "timed out after 0.2 s on 127.0.0.1"
    rank 0: join() of the only member must name the missing rank 2; the error is "timed out after 0.2 s on 127.0.0.1"
  [  FAILED  ] Join.NamesTheMissingRanks (# ms)
  [  FAILED  ] 1 check:
  [  FAILED  ] Join.NamesTheMissingRanks [C3]

Calls that hang, crash or exit do not end the others:

  $ planted hang 'Broadcast.*:Counts.OfTransfers*' 0.5
  status 1
  [ RUN      ] Broadcast.ComesFromEveryRoot
    the check did not return within 2 s; rank 0 in broadcast(), rank 1 in broadcast()
    contract: [C18] broadcast gives the view of the root to all members. Every member may be the root. (triax/communicator.hpp:#)
  [  FAILED  ] Broadcast.ComesFromEveryRoot (# ms)
  [ RUN      ] Counts.OfTransfersAreTheirViews
  [       OK ] Counts.OfTransfersAreTheirViews (# ms)
  [  PASSED  ] 1 check
  [  FAILED  ] 1 check:
  [  FAILED  ] Broadcast.ComesFromEveryRoot [C18]
  $ planted crash 'Exchange.WithoutTransfersCompletes:AllGather.*'
  status 1
  [ RUN      ] AllGather.IsInTheOrderOfTheGroup
  [       OK ] AllGather.IsInTheOrderOfTheGroup (# ms)
  [ RUN      ] Exchange.WithoutTransfersCompletes
    the check crashed with SIGSEGV (Segmentation fault)
    contract: [C24] The transfers of one exchange() have no order among themselves, so a cycle of exchanges does not deadlock. An exchange without transfers completes. (triax/communicator.hpp:#)
  [  FAILED  ] Exchange.WithoutTransfersCompletes (# ms)
  [  PASSED  ] 1 check
  [  FAILED  ] 1 check:
  [  FAILED  ] Exchange.WithoutTransfersCompletes [C24]
  $ planted exits 'Broadcast.*:AllGather.*'
  status 1
  [ RUN      ] AllGather.IsInTheOrderOfTheGroup
  [       OK ] AllGather.IsInTheOrderOfTheGroup (# ms)
  [ RUN      ] Broadcast.ComesFromEveryRoot
    the check called exit(3)
    contract: [C18] broadcast gives the view of the root to all members. Every member may be the root. (triax/communicator.hpp:#)
  [  FAILED  ] Broadcast.ComesFromEveryRoot (# ms)
  [  PASSED  ] 1 check
  [  FAILED  ] 1 check:
  [  FAILED  ] Broadcast.ComesFromEveryRoot [C18]
