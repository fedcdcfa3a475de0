# SPDX-License-Identifier: Apache-2.0

# triax plugins test, with schedulers and optimizers

Times differ from run to run.

  $ times() { sed -E -e 's/\([0-9]+ ms\)/(# ms)/' -e 's/hpp:[0-9]+\)/hpp:#)/'; }
  $ faults() { for fault in $3; do echo "$fault"; triax plugins test "$BUILD/tests/conformance/plugins/$1.so" --set "$2.fault=$fault" --filter '*-Options.*' > out.txt; echo "status $?"; sed -n '/checks:$\|check:$/,$p' out.txt | grep '^\[  FAILED  \] [A-Z]'; done; }

A scheduler, and an optimizer with its own loops, without a fault:

  $ triax plugins test "$BUILD/tests/conformance/plugins/sched-planted.so" --filter 'Rows.*' > out.txt; echo $?; times < out.txt | tail -3
  0
  [       OK ] Rows.EndOnEveryCommunicator (# ms)
  [==========] 7 checks ran (# ms)
  [  PASSED  ] 7 checks
  $ triax plugins test "$BUILD/tests/conformance/plugins/optim-planted.so" > out.txt; echo $?; times < out.txt | grep 'PASSED\|FAILED'
  0
  [  PASSED  ] 21 checks
  $ triax plugins test "$BUILD/tests/conformance/plugins/sched-planted.so" --list
  Supports.RefusesWithReasonsAndKeys [S1]
  Supports.AnswersAreEqual [S2]
  Rows.AreEqualInEveryCallAndObject [S2]
  Rows.AreEqualOnEveryThread [S2]
  Options.AtTheirLimitsRefuseOrGiveRows [S7]
  Rows.GiveEachStageToARank [S3]
  Rows.HaveEachActionOnce [S4]
  Rows.OfALargeShapeHaveAllActions [S4]
  Rows.AreInOrder [S5]
  Rows.EndOnEveryCommunicator [S6]

## Planted faults

The report names the values and the clause:

  $ triax plugins test "$BUILD/tests/conformance/plugins/sched-planted.so" --set schedule.fault=missing --filter 'Rows.HaveEachActionOnce' > out.txt; echo $?; times < out.txt
  1
  [==========] 1 check of sched-planted
  [ RUN      ] Rows.HaveEachActionOnce
    p = 2, v = 1, m = 1: rank 1: 1B0 is missing, the backward of stage 1, microbatch 0
    p = 2, v = 1, m = 3: rank 1: 1B2 is missing, the backward of stage 1, microbatch 2
    p = 2, v = 1, m = 5: rank 1: 1B4 is missing, the backward of stage 1, microbatch 4
    and 46 more
    contract: [S4] Each stage has F of every microbatch once, and either B once, or I and W once each, all in the row of its rank. Microbatches of a stage may differ in that. Actions name the whole sequence (slice 0). (triax/scheduler.hpp:#)
  [  FAILED  ] Rows.HaveEachActionOnce (# ms)
  [==========] 1 check ran (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 1 check:
  [  FAILED  ] Rows.HaveEachActionOnce [S4]
  $ triax plugins test "$BUILD/tests/conformance/plugins/optim-planted.so" --set optimizer.fault=decays_all --filter 'WeightDecay.*' > out.txt; echo $?; times < out.txt
  1
  [==========] 1 check of optim-planted with kernels-reference and kernels-cpu
  [ RUN      ] WeightDecay.IsOfMarkedParameters
    f32: weight decay changes block 0/bias, whose ParamSpec::decay is false
    f32: weight decay changes block 0/scale, whose ParamSpec::decay is false
    f32: weight decay changes block 1/bias, whose ParamSpec::decay is false
    and 9 more
    contract: [O10] weight_decay changes parameters with ParamSpec::decay, and no others. (triax/optimizer.hpp:#)
  [  FAILED  ] WeightDecay.IsOfMarkedParameters (# ms)
  [==========] 1 check ran (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 1 check:
  [  FAILED  ] WeightDecay.IsOfMarkedParameters [O10]

A fault at one value of an option names the option:

  $ triax plugins test "$BUILD/tests/conformance/plugins/sched-planted.so" --set schedule.fault=one_value --filter 'Options.*' | grep 'group' | head -2
    group = 3, p = 1, v = 1, m = 1: rank 0: 0B0 is missing, the backward of stage 0, microbatch 0 [S4]
    group = 3, p = 1, v = 1, m = 2: rank 0: 0B1 is missing, the backward of stage 0, microbatch 1 [S4]

A fault at a limit of an option does, too:

  $ triax plugins test "$BUILD/tests/conformance/plugins/sched-planted.so" --filter 'Options.*' > out.txt; echo $?; times < out.txt | sed -n '2,4p'
  1
  [ RUN      ] Options.AtTheirLimitsRefuseOrGiveRows
    fault = no_keys, p = 1, v = 2, m = 1: the refusal "parallel.chunks = 2: must be 1" names no key
    fault = no_keys, p = 1, v = 2, m = 2: the refusal "parallel.chunks = 2: must be 1" names no key

Every fault of a scheduler is found:

  $ faults sched-planted schedule "no_keys throws refuses_all counts_calls per_object per_rank delay stage_map empty_rank missing twice twice_late descending weight_first deadlock"
  no_keys
  status 1
  [  FAILED  ] Supports.RefusesWithReasonsAndKeys [S1]
  throws
  status 1
  [  FAILED  ] Supports.RefusesWithReasonsAndKeys [S1]
  [  FAILED  ] Supports.AnswersAreEqual [S2]
  [  FAILED  ] Rows.AreEqualInEveryCallAndObject [S2]
  [  FAILED  ] Rows.AreEqualOnEveryThread [S2]
  [  FAILED  ] Rows.GiveEachStageToARank [S3]
  [  FAILED  ] Rows.HaveEachActionOnce [S4]
  [  FAILED  ] Rows.AreInOrder [S5]
  [  FAILED  ] Rows.EndOnEveryCommunicator [S6]
  refuses_all
  status 1
  [  FAILED  ] Supports.RefusesWithReasonsAndKeys [S1]
  [  FAILED  ] Rows.OfALargeShapeHaveAllActions [S4]
  counts_calls
  status 1
  [  FAILED  ] Rows.AreEqualInEveryCallAndObject [S2]
  [  FAILED  ] Rows.AreEqualOnEveryThread [S2]
  per_object
  status 1
  [  FAILED  ] Rows.AreEqualInEveryCallAndObject [S2]
  per_rank
  status 1
  [  FAILED  ] Rows.AreEqualInEveryCallAndObject [S2]
  delay
  status 1
  [  FAILED  ] Rows.GiveEachStageToARank [S3]
  stage_map
  status 1
  [  FAILED  ] Rows.GiveEachStageToARank [S3]
  empty_rank
  status 1
  [  FAILED  ] Rows.GiveEachStageToARank [S3]
  missing
  status 1
  [  FAILED  ] Rows.HaveEachActionOnce [S4]
  twice
  status 1
  [  FAILED  ] Rows.HaveEachActionOnce [S4]
  twice_late
  status 1
  [  FAILED  ] Rows.HaveEachActionOnce [S4]
  descending
  status 1
  [  FAILED  ] Rows.AreInOrder [S5]
  weight_first
  status 1
  [  FAILED  ] Rows.AreInOrder [S5]
  deadlock
  status 1
  [  FAILED  ] Rows.EndOnEveryCommunicator [S6]

Every fault of an optimizer is found:

  $ faults optim-planted optimizer "no_keys same_names any_device not_ready reads_in_plan ignores_skip counts_skips ignores_clip ignores_lr decays_all truncates writes_beside allocates hidden_state part_index calls bad_load scratch_end scratch_kept scratch_sizes per_object"
  no_keys
  status 1
  [  FAILED  ] Supports.RefusesWithReasonsAndKeys [O1]
  same_names
  status 1
  [  FAILED  ] State.HasDistinctNames [O2]
  any_device
  status 1
  [  FAILED  ] Device.MemoryIsAccessedByKernelsOnly [O17]
  not_ready
  status 1
  [  FAILED  ] Step.BeginsAfterItsStream [O13]
  reads_in_plan
  status 1
  [  FAILED  ] Planning.CallsTheSameOperations [O16]
  ignores_skip
  status 1
  [  FAILED  ] Skip.ChangesNothing [O7]
  [  FAILED  ] Skip.LeavesNoTrace [O7]
  counts_skips
  status 1
  [  FAILED  ] Skip.LeavesNoTrace [O7]
  [  FAILED  ] Step.TakesAnyShardsInACall [O5]
  [  FAILED  ] Continue.NewObjectHasEqualBits [O18]
  ignores_clip
  status 1
  [  FAILED  ] Clip.ScalesTheGradient [O8]
  ignores_lr
  status 1
  [  FAILED  ] LearningRate.ScalesTheChange [O9]
  decays_all
  status 1
  [  FAILED  ] WeightDecay.IsOfMarkedParameters [O10]
  truncates
  status 1
  [  FAILED  ] Working.IsTheRoundedMaster [O11]
  writes_beside
  status 1
  [  FAILED  ] Step.WritesOnlyItsTensors [O12]
  allocates
  status 1
  [  FAILED  ] SteadyState.DoesNotAllocate [O15]
  hidden_state
  status 1
  [  FAILED  ] Step.TakesAnyShardsInACall [O5]
  [  FAILED  ] Continue.NewObjectHasEqualBits [O18]
  part_index
  status 1
  [  FAILED  ] Update.OfPartsEqualsTheWhole [O4]
  calls
  status 1
  [  FAILED  ] Skip.LeavesNoTrace [O7]
  [  FAILED  ] Step.TakesAnyShardsInACall [O5]
  [  FAILED  ] Continue.NewObjectHasEqualBits [O18]
  bad_load
  status 1
  [  FAILED  ] SavedState.UnreadableIsAnError [O19]
  scratch_end
  status 1
  [  FAILED  ] Scratch.IsEnough [O3]
  scratch_kept
  status 1
  [  FAILED  ] Step.KeepsNothingInGradientsAndScratch [O14]
  scratch_sizes
  status 1
  [  FAILED  ] Scratch.GrowsWithTheShards [O3]
  per_object
  status 1
  [  FAILED  ] Update.OfPartsEqualsTheWhole [O4]
  [  FAILED  ] Update.RepeatsHaveEqualBits [O6]
  [  FAILED  ] Skip.LeavesNoTrace [O7]
  [  FAILED  ] Clip.ScalesTheGradient [O8]
  [  FAILED  ] WeightDecay.IsOfMarkedParameters [O10]
  [  FAILED  ] Step.TakesAnyShardsInACall [O5]
  [  FAILED  ] Step.BeginsAfterItsStream [O13]
  [  FAILED  ] Step.KeepsNothingInGradientsAndScratch [O14]
  [  FAILED  ] Continue.NewObjectHasEqualBits [O18]
