# SPDX-License-Identifier: Apache-2.0

# triax plugins test

Times differ from run to run.

  $ times() { sed -E -e 's/\([0-9]+ ms\)/(# ms)/' -e 's/hpp:[0-9]+\)/hpp:#)/' -e 's/called exit\(1\); rank.*ABORTING.*/crashed with SIGSEGV (Segmentation fault)/' -e 's/(SEGV.*\)|exit\(3\)); rank.*/\1/'; }
  $ planted=$BUILD/tests/conformance/plugins/comm-planted.so

A communicator without a fault:

  $ triax plugins test comm-local --filter 'Abort.MayComeFromAnyThread:AllReduce.WrapsIntegers:Killed.*' > out.txt; echo $?; times < out.txt
  0
  [==========] 3 checks of comm-local, up to 5 ranks as threads
  [ RUN      ] AllReduce.WrapsIntegers
  [       OK ] AllReduce.WrapsIntegers (# ms)
  [ RUN      ] Abort.MayComeFromAnyThread
  [       OK ] Abort.MayComeFromAnyThread (# ms)
  [ RUN      ] Killed.PeerDoesNotKeepTheOthers
    skipped: the ranks are threads, which cannot be killed; use --processes
  [  SKIPPED ] Killed.PeerDoesNotKeepTheOthers
  [==========] 3 checks ran (# ms)
  [  PASSED  ] 2 checks
  [  SKIPPED ] 1 check:
  [  SKIPPED ] Killed.PeerDoesNotKeepTheOthers [C35]

A signal ends the running check, which has no result:

  $ "$TRIAX" plugins test comm-local > out 2> err &
  $ for moment in $(seq 100); do grep -q RUN out && break; sleep 0.05; done
  $ kill -TERM $!; wait $!
  [143]
  $ sed -E 's/[0-9]+ of [0-9]+/# of #/' err
  stopped by SIGTERM after # of # checks

Unsupported requests:

  $ triax plugins test sched-gpipe --processes --ranks 4
  --processes has no effect on a scheduler
    leave --processes out: it is for communicators
  --ranks has no effect on a scheduler
    leave --ranks out: it is for communicators
  [2]
  $ for plugin in comm-local sched-gpipe optim-sgd kernels-cpu; do triax plugins test $plugin --kernels kernels-cpu; done
  --kernels kernels-cpu must be a kernel set for GPUs; its device is the host
    leave --kernels out, or name a kernel set that computes on GPUs
  --kernels has no effect on a scheduler
    leave --kernels out: it is for communicators, models
  --kernels has no effect on an optimizer
    leave --kernels out: it is for communicators, models
  --kernels has no effect on a kernel set
    leave --kernels out: it is for communicators, models
  [2]
  $ triax plugins test comm-locla 2>&1 | sed 's/ or "comm-nccl"//' # which not every build has
  plugin "comm-locla" was not found; did you mean "comm-local"?
    looked in: {plugins}
    installed communicators: {names}
    correct the name, or name the plugin's folder with --path or TRIAX_PLUGIN_PATH
  $ triax plugins test comm-local --processes
  comm-local: comm-local joins ranks that are threads of one process; this run's ranks are processes
  [2]
  $ triax plugins test comm-local --filter 'Nothing.*'
  --filter Nothing.* selects none of the 61 checks
    --list shows their names
  [2]
  $ triax plugins test comm-local --set comm.fast=true
  --set comm.fast: comm-local has no such option
    triax plugins describe {plugins}/comm-local.so lists its options
  [2]
  $ triax plugins test comm-local --set fast
  triax: --set must be TABLE.KEY=VALUE, got "fast"
    see: triax plugins test --help
  [2]
  $ triax plugins test comm-local --threads --processes
  triax: --threads cannot be combined with --processes
    see: triax plugins test --help
  [2]
  $ triax plugins test "$planted" --set comm.fault=imagined
  --set comm.fault must be one of none, throws, order, scatter_order, abort, wrong_order, channels, bytes, refused_bytes, element, root, hang, crash, exits, completes_inside, empty_completes_inside, ignores_stream, sends_copy, allocates, throws_after_abort, barrier, barrier_ignores_abort, buffered, early_event, mixed_types, joins_late, joins_without_names, joined_traits or hang_traits, got "imagined"
  [2]

Checks and their clauses:

  $ triax plugins test comm-local --filter 'Abort.*' --list
  Abort.FailsPendingAndLaterCallsOfAllMembers [C30]
  Abort.LaterPostsDoNotThrow [C31]
  Abort.MayComeFromAnyThread [C30]
  Abort.UnblocksItsOwnMember [C30]
  Abort.KeepsTheFirstReason [C30]
  Abort.RefusedPostsAreNotCounted [C29]
  Abort.FailsCallsOutOfTurn [C32]
  $ triax plugins test comm-local --filter 'Join.Gives*' --list --json
  {"checks":[{"name":"Join.GivesSizeAndIndex","clause":"C2"}]}

As JSON and JUnit XML:

  $ triax plugins test comm-local --filter 'Pending.*' --json --junit out.xml | sed -E -e 's/"seconds":[0-9.e-]+/"seconds":#/' -e 's/"line":[0-9]+/"line":#/'
  {"subject":"comm-local, up to 5 ranks as threads","checks":[{"name":"Pending.ReportsTheLastCall","outcome":"passed","seconds":#,"clause":{"id":"C12","sentence":"pending() reports the last posted call until that is complete.","header":"triax/communicator.hpp","line":#}}]}
  $ sed -E 's/time="[^"]*"/time="#"/g' out.xml
  <?xml version="1.0" encoding="UTF-8"?>
  <testsuites tests="1" failures="0" skipped="0" errors="0" time="#">
  <testsuite name="comm-local, up to 5 ranks as threads" tests="1" failures="0" skipped="0" errors="0" time="#">
    <testcase classname="comm-local, up to 5 ranks as threads.Pending" name="ReportsTheLastCall" time="#"/>
  </testsuite>
  </testsuites>
