# SPDX-License-Identifier: Apache-2.0

# triax plugins test, with planners

  $ planted="$BUILD/tests/conformance/plugins/plan-planted.so"
  $ times() { sed -E -e 's/\([0-9]+ ms\)/(# ms)/' -e 's/hpp:[0-9]+\)/hpp:#)/'; }
  $ fault() { echo "$1"; triax plugins test "$planted" --set "plan.fault=$1" --filter "$2" > out.txt; echo "status $?"; sed -n '/checks:$\|check:$/,$p' out.txt | grep '^\[  FAILED  \] [A-Z]'; }

A planner that evaluates every plan, without a fault:

  $ triax plugins test "$planted" > out.txt; echo $?; times < out.txt | grep 'PASSED\|FAILED'
  0
  [  PASSED  ] 13 checks
  $ triax plugins test "$planted" --list
  Answer.HasAtMostCountPlansOfTheSpaceOnce [P1]
  Search.AsksForPlansOfTheSpace [P2]
  Answer.FitsIntoMemory [P3]
  Answer.HasNoRefusedPlan [P4]
  Answer.IsEmptyIfAllAreRefused [P4]
  Answer.IsFastestFirst [P5]
  Answer.IsEmptyIfNothingFits [P6]
  Answer.IsEmptyForAnEmptySpace [P6]
  Answer.IsTheOnlyPlan [P7]
  Answer.IsEqualInEveryCallAndObject [P8]
  Search.CallsAreAtMostThePlans [P9]
  Stop.EndsTheSearch [P10]
  Destroyed.LeavesNothingBehind [P11]

## Planted faults

The report names the search, the plan and the clause:

  $ triax plugins test "$planted" --set plan.fault=unfit --filter 'Answer.FitsIntoMemory' > out.txt; echo $?; times < out.txt | sed -n '2,7p'
  1
  [ RUN      ] Answer.FitsIntoMemory
    16 ranks, half of the plans fit, count 1: search() returns p = 1, t = 1, d = 16, v = 1, b = 2, schedule 0, shard 0, recompute none, which does not fit: 73728 bytes of 16384
    16 ranks, half of the plans fit, count 50: search() returns p = 1, t = 1, d = 16, v = 1, b = 2, schedule 0, shard 0, recompute none, which does not fit: 73728 bytes of 16384
    16 ranks, half of the plans fit, count 50: search() returns p = 1, t = 1, d = 16, v = 1, b = 2, schedule 0, shard 1, recompute none, which does not fit: 43008 bytes of 16384
    and 526 more
    contract: [P3] evaluate() says of each returned plan that it fits. (triax/planner.hpp:#)

Every fault is found:

  $ fault too_many 'Answer.*'
  too_many
  status 1
  [  FAILED  ] Answer.HasAtMostCountPlansOfTheSpaceOnce [P1]
  $ fault twice 'Answer.*'
  twice
  status 1
  [  FAILED  ] Answer.HasAtMostCountPlansOfTheSpaceOnce [P1]
  $ fault outside 'Answer.*'
  outside
  status 1
  [  FAILED  ] Answer.HasAtMostCountPlansOfTheSpaceOnce [P1]
  [  FAILED  ] Answer.IsTheOnlyPlan [P7]
  $ fault asks_outside '*'; fault asks_smaller '*'; fault asks_without_plans '*'
  asks_outside
  status 1
  [  FAILED  ] Search.AsksForPlansOfTheSpace [P2]
  asks_smaller
  status 1
  [  FAILED  ] Search.AsksForPlansOfTheSpace [P2]
  asks_without_plans
  status 1
  [  FAILED  ] Search.AsksForPlansOfTheSpace [P2]
  $ fault unfit 'Answer.*'
  unfit
  status 1
  [  FAILED  ] Answer.FitsIntoMemory [P3]
  [  FAILED  ] Answer.IsFastestFirst [P5]
  [  FAILED  ] Answer.IsEmptyIfNothingFits [P6]
  $ fault refused 'Answer.HasNoRefusedPlan:Answer.IsEmptyIfAllAreRefused'
  refused
  status 1
  [  FAILED  ] Answer.HasNoRefusedPlan [P4]
  [  FAILED  ] Answer.IsEmptyIfAllAreRefused [P4]
  $ fault refused_throws 'Answer.HasNoRefusedPlan:Answer.IsEmptyIfAllAreRefused'
  refused_throws
  status 1
  [  FAILED  ] Answer.HasNoRefusedPlan [P4]
  [  FAILED  ] Answer.IsEmptyIfAllAreRefused [P4]
  $ fault slowest_first 'Answer.*'
  slowest_first
  status 1
  [  FAILED  ] Answer.IsFastestFirst [P5]
  $ fault guesses 'Answer.IsEmpty*'
  guesses
  status 1
  [  FAILED  ] Answer.IsEmptyIfAllAreRefused [P4]
  [  FAILED  ] Answer.IsEmptyIfNothingFits [P6]
  [  FAILED  ] Answer.IsEmptyForAnEmptySpace [P6]
  $ fault skips_one '*'
  skips_one
  status 1
  [  FAILED  ] Answer.IsTheOnlyPlan [P7]
  $ fault per_object '*'
  per_object
  status 1
  [  FAILED  ] Answer.IsEqualInEveryCallAndObject [P8]
  $ fault per_call '*'
  per_call
  status 1
  [  FAILED  ] Answer.IsEqualInEveryCallAndObject [P8]
  $ fault asks_twice '*'
  asks_twice
  status 1
  [  FAILED  ] Search.CallsAreAtMostThePlans [P9]
  $ fault ignores_stop '*'
  ignores_stop
  status 1
  [  FAILED  ] Stop.EndsTheSearch [P10]
  $ fault empty_stop '*'
  empty_stop
  status 1
  [  FAILED  ] Stop.EndsTheSearch [P10]
  $ fault keeps_file '*'
  keeps_file
  status 1
  [  FAILED  ] Destroyed.LeavesNothingBehind [P11]
  $ fault keeps_thread '*'
  keeps_thread
  status 1
  [  FAILED  ] Destroyed.LeavesNothingBehind [P11]
