# SPDX-License-Identifier: Apache-2.0

# triax plugins test, with schedulers and optimizers

Times differ from run to run.

  $ times() { sed -E -e 's/\([0-9]+ ms\)/(# ms)/' -e 's/hpp:[0-9]+\)/hpp:#)/'; }
  $ fault() { echo "${2#*=}"; triax plugins test "$BUILD/tests/conformance/plugins/$1.so" --set "$2" --filter "$3" > out.txt; echo "status $?"; sed -n '/checks:$\|check:$/,$p' out.txt | grep '^\[  FAILED  \] [A-Z]'; }

A scheduler, and an optimizer with its own loops, without a fault:

  $ triax plugins test "$BUILD/tests/conformance/plugins/sched-planted.so" --filter 'Rows.*' > out.txt; echo $?; times < out.txt | tail -3
  0
  [       OK ] Rows.EndOnEveryCommunicator (# ms)
  [==========] 7 checks ran (# ms)
  [  PASSED  ] 7 checks
  $ triax plugins test "$BUILD/tests/conformance/plugins/optim-planted.so" > out.txt; echo $?; times < out.txt | grep 'PASSED\|FAILED'
  0
  [  PASSED  ] 26 checks
  $ triax plugins test "$BUILD/tests/conformance/plugins/sched-planted.so" --list
  Supports.RefusesWithReasonsAndKeys [S1]
  Supports.AnswersAreEqual [S2]
  Rows.AreEqualInEveryCallAndObject [S2]
  Rows.AreEqualOnEveryThread [S2]
  Options.AtTheirLimitsRefuseOrGiveRows [S7]
  Rows.GiveEachStageToARank [S3]
  Rows.HaveEachActionOnce [S4]
  Rows.LargeShapeHasAllActions [S4]
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
  [ RUN      ] WeightDecay.ChangesMarkedParametersOnly
    f32: weight decay changes block 0/bias, whose ParamSpec::decay is false
    f32: weight decay changes block 0/scale, whose ParamSpec::decay is false
    f32: weight decay changes block 1/bias, whose ParamSpec::decay is false
    and 9 more
    contract: [O10] weight_decay changes parameters with ParamSpec::decay, and no others. (triax/optimizer.hpp:#)
  [  FAILED  ] WeightDecay.ChangesMarkedParametersOnly (# ms)
  [==========] 1 check ran (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 1 check:
  [  FAILED  ] WeightDecay.ChangesMarkedParametersOnly [O10]

A fault at one value of an option names the option:

  $ triax plugins test "$BUILD/tests/conformance/plugins/sched-planted.so" --set schedule.fault=one_value --filter 'Options.*' | grep 'group' | head -2
    group = 3, p = 1, v = 1, m = 1: rank 0: 0B0 is missing, the backward of stage 0, microbatch 0 [S4]
    group = 3, p = 1, v = 1, m = 2: rank 0: 0B1 is missing, the backward of stage 0, microbatch 1 [S4]

So does a constructor that throws:

  $ triax plugins test "$BUILD/tests/conformance/plugins/sched-planted.so" --set schedule.fault=constructor --filter 'Options.*' | grep 'group' | head -1
    group = 100: sched-planted could not be created: the group is too large

A fault at a limit of an option does, too:

  $ triax plugins test "$BUILD/tests/conformance/plugins/sched-planted.so" --filter 'Options.*' > out.txt; echo $?; times < out.txt | sed -n '2,4p'
  1
  [ RUN      ] Options.AtTheirLimitsRefuseOrGiveRows
    fault = no_keys, p = 1, v = 2, m = 1: the refusal "parallel.chunks = 2: must be 1" has an empty list of keys (Refusal::keys)
    fault = no_keys, p = 1, v = 2, m = 2: the refusal "parallel.chunks = 2: must be 1" has an empty list of keys (Refusal::keys)

An open limit is not a value:

  $ triax plugins test "$BUILD/tests/conformance/plugins/sched-planted.so" --filter 'Options.*' | grep -c wave
  0
  [1]

A text of a plugin may have any bytes:

  $ triax plugins test "$BUILD/tests/conformance/plugins/sched-planted.so" --set schedule.fault=throws --filter 'Supports.Ref*' --json | grep -o '"name":"Supports[^,]*,"outcome":"[a-z]*"'
  "name":"Supports.RefusesWithReasonsAndKeys","outcome":"failed"

Every fault of a scheduler is found:

  $ fault sched-planted schedule.fault=no_keys 'Supports.RefusesWithReasonsAndKeys'
  no_keys
  status 1
  [  FAILED  ] Supports.RefusesWithReasonsAndKeys [S1]
  $ fault sched-planted schedule.fault=throws 'Supports.*'
  throws
  status 1
  [  FAILED  ] Supports.RefusesWithReasonsAndKeys [S1]
  [  FAILED  ] Supports.AnswersAreEqual [S2]
  $ fault sched-planted schedule.fault=refuses_all 'Supports.RefusesWithReasonsAndKeys:Rows.LargeShapeHasAllActions'
  refuses_all
  status 1
  [  FAILED  ] Supports.RefusesWithReasonsAndKeys [S1]
  [  FAILED  ] Rows.LargeShapeHasAllActions [S4]
  $ fault sched-planted schedule.fault=counts_calls 'Rows.AreEqualInEveryCallAndObject:Rows.AreEqualOnEveryThread'
  counts_calls
  status 1
  [  FAILED  ] Rows.AreEqualInEveryCallAndObject [S2]
  [  FAILED  ] Rows.AreEqualOnEveryThread [S2]
  $ fault sched-planted schedule.fault=per_object 'Rows.AreEqualInEveryCallAndObject'
  per_object
  status 1
  [  FAILED  ] Rows.AreEqualInEveryCallAndObject [S2]
  $ fault sched-planted schedule.fault=per_rank 'Rows.AreEqualInEveryCallAndObject'
  per_rank
  status 1
  [  FAILED  ] Rows.AreEqualInEveryCallAndObject [S2]
  $ fault sched-planted schedule.fault=stage_map 'Rows.GiveEachStageToARank'
  stage_map
  status 1
  [  FAILED  ] Rows.GiveEachStageToARank [S3]
  $ fault sched-planted schedule.fault=empty_rank 'Rows.GiveEachStageToARank'
  empty_rank
  status 1
  [  FAILED  ] Rows.GiveEachStageToARank [S3]
  $ fault sched-planted schedule.fault=missing 'Rows.HaveEachActionOnce'
  missing
  status 1
  [  FAILED  ] Rows.HaveEachActionOnce [S4]
  $ fault sched-planted schedule.fault=twice 'Rows.HaveEachActionOnce'
  twice
  status 1
  [  FAILED  ] Rows.HaveEachActionOnce [S4]
  $ fault sched-planted schedule.fault=twice_late 'Rows.HaveEachActionOnce'
  twice_late
  status 1
  [  FAILED  ] Rows.HaveEachActionOnce [S4]
  $ fault sched-planted schedule.fault=descending 'Rows.AreInOrder'
  descending
  status 1
  [  FAILED  ] Rows.AreInOrder [S5]
  $ fault sched-planted schedule.fault=weight_first 'Rows.AreInOrder'
  weight_first
  status 1
  [  FAILED  ] Rows.AreInOrder [S5]
  $ fault sched-planted schedule.fault=deadlock 'Rows.EndOnEveryCommunicator'
  deadlock
  status 1
  [  FAILED  ] Rows.EndOnEveryCommunicator [S6]

Every fault of an optimizer is found:

  $ fault optim-planted optimizer.fault=no_keys 'Supports.RefusesWithReasonsAndKeys'
  no_keys
  status 1
  [  FAILED  ] Supports.RefusesWithReasonsAndKeys [O1]
  $ fault optim-planted optimizer.fault=same_names 'State.HasDistinctNames'
  same_names
  status 1
  [  FAILED  ] State.HasDistinctNames [O2]
  $ fault optim-planted optimizer.fault=many_names 'State.HasDistinctNames'
  many_names
  status 1
  [  FAILED  ] State.HasDistinctNames [O2]
  $ fault optim-planted optimizer.fault=traits_by_call 'State.HasDistinctNames'
  traits_by_call
  status 1
  [  FAILED  ] State.HasDistinctNames [O2]
  $ fault optim-planted optimizer.fault=any_device 'Device.MemoryIsAccessedByKernelsOnly'
  any_device
  status 1
  [  FAILED  ] Device.MemoryIsAccessedByKernelsOnly [O17]
  $ fault optim-planted optimizer.fault=not_ready 'Step.BeginsAfterItsStream'
  not_ready
  status 1
  [  FAILED  ] Step.BeginsAfterItsStream [O13]
  $ fault optim-planted optimizer.fault=early_scalars '*'
  early_scalars
  status 1
  [  FAILED  ] Step.BeginsAfterItsStream [O13]
  $ fault optim-planted optimizer.fault=reads_in_plan 'DryRun.CallsTheSameOperations'
  reads_in_plan
  status 1
  [  FAILED  ] DryRun.CallsTheSameOperations [O16]
  $ fault optim-planted optimizer.fault=ignores_skip 'Skip.ChangesNothing:Skip.LeavesNoTrace'
  ignores_skip
  status 1
  [  FAILED  ] Skip.ChangesNothing [O7]
  [  FAILED  ] Skip.LeavesNoTrace [O7]
  $ fault optim-planted optimizer.fault=counts_skips 'Skip.LeavesNoTrace:Step.TakesAnyShardsInACall:Continue.NewObjectHasEqualBits'
  counts_skips
  status 1
  [  FAILED  ] Skip.LeavesNoTrace [O7]
  [  FAILED  ] Step.TakesAnyShardsInACall [O5]
  [  FAILED  ] Continue.NewObjectHasEqualBits [O18]
  $ fault optim-planted optimizer.fault=ignores_clip 'Clip.ScalesTheGradient'
  ignores_clip
  status 1
  [  FAILED  ] Clip.ScalesTheGradient [O8]
  $ fault optim-planted optimizer.fault=ignores_lr 'LearningRate.ScalesTheChange'
  ignores_lr
  status 1
  [  FAILED  ] LearningRate.ScalesTheChange [O9]
  $ fault optim-planted optimizer.fault=decays_all 'WeightDecay.ChangesMarkedParametersOnly'
  decays_all
  status 1
  [  FAILED  ] WeightDecay.ChangesMarkedParametersOnly [O10]
  $ fault optim-planted optimizer.fault=truncates 'Working.IsTheRoundedMaster'
  truncates
  status 1
  [  FAILED  ] Working.IsTheRoundedMaster [O11]
  $ fault optim-planted optimizer.fault=writes_beside 'Step.WritesOnlyItsTensors'
  writes_beside
  status 1
  [  FAILED  ] Step.WritesOnlyItsTensors [O12]
  $ fault optim-planted optimizer.fault=scales_gradient '*'
  scales_gradient
  status 1
  [  FAILED  ] Step.WritesOnlyItsTensors [O12]
  $ fault optim-planted optimizer.fault=allocates 'SteadyState.DoesNotAllocate'
  allocates
  status 1
  [  FAILED  ] SteadyState.DoesNotAllocate [O15]
  $ fault optim-planted optimizer.fault=hidden_state 'Step.TakesAnyShardsInACall:Continue.NewObjectHasEqualBits'
  hidden_state
  status 1
  [  FAILED  ] Step.TakesAnyShardsInACall [O5]
  [  FAILED  ] Continue.NewObjectHasEqualBits [O18]
  $ fault optim-planted optimizer.fault=part_index 'Update.OfPartsEqualsTheWhole'
  part_index
  status 1
  [  FAILED  ] Update.OfPartsEqualsTheWhole [O4]
  $ fault optim-planted optimizer.fault=calls 'Skip.LeavesNoTrace:Step.TakesAnyShardsInACall:Continue.NewObjectHasEqualBits'
  calls
  status 1
  [  FAILED  ] Skip.LeavesNoTrace [O7]
  [  FAILED  ] Step.TakesAnyShardsInACall [O5]
  [  FAILED  ] Continue.NewObjectHasEqualBits [O18]
  $ fault optim-planted optimizer.fault=bad_load 'SavedState.UnreadableIsAnError'
  bad_load
  status 1
  [  FAILED  ] SavedState.UnreadableIsAnError [O19]
  $ fault optim-planted optimizer.fault=scratch_end 'Scratch.IsEnough'
  scratch_end
  status 1
  [  FAILED  ] Scratch.IsEnough [O3]
  $ fault optim-planted optimizer.fault=scratch_kept 'Step.KeepsNothingInGradientsAndScratch'
  scratch_kept
  status 1
  [  FAILED  ] Step.KeepsNothingInGradientsAndScratch [O14]
  $ fault optim-planted optimizer.fault=scratch_sizes 'Scratch.GrowsWithTheShards'
  scratch_sizes
  status 1
  [  FAILED  ] Scratch.GrowsWithTheShards [O3]
  $ fault optim-planted optimizer.fault=per_object 'Update.*'
  per_object
  status 1
  [  FAILED  ] Update.OfPartsEqualsTheWhole [O4]
  [  FAILED  ] Update.RepeatsHaveEqualBits [O6]
  $ fault optim-planted optimizer.fault=per_rank 'Ranks.*'
  per_rank
  status 1
  [  FAILED  ] Ranks.EqualOneRank [O20]
  [  FAILED  ] Ranks.HaveEqualBits [O21]
