# SPDX-License-Identifier: Apache-2.0

# triax plugins test, with models

Times differ from run to run, and the last digits of values from compiler to compiler.

  $ times() { sed -E -e 's/\([0-9]+ ms\)/(# ms)/' -e 's/hpp:[0-9]+\)/hpp:#)/'; }
  $ values() { times | sed -E -e 's/-?nan|-?[0-9]+\.[0-9]+(e-[0-9]+)?/#/g'; }
  $ planted=$BUILD/tests/conformance/plugins/model-planted.so

A model without a fault. Sizes that have no default are those of a small model:

  $ triax plugins test model-gpt > out.txt; echo $?; times < out.txt | head -3; times < out.txt | tail -2
  0
  [==========] 44 checks of model-gpt (dropout = 0.25, heads = 4, hidden = 16, layers = 2, sequence = 8) with kernels-reference
  [ RUN      ] Supports.RefusesWithReasonsAndKeys
  [       OK ] Supports.RefusesWithReasonsAndKeys (# ms)
  [==========] 44 checks ran (# ms)
  [  PASSED  ] 44 checks
  $ triax plugins test model-gpt --set model.layers=1 --set model.dropout=0 --kernels kernels-cpu --filter 'Samples.*' > out.txt; echo $?; times < out.txt
  0
  [==========] 3 checks of model-gpt (dropout = 0.0, heads = 4, hidden = 16, layers = 1, sequence = 8) with kernels-cpu
  [ RUN      ] Samples.DoNotDependOnOthers
  [       OK ] Samples.DoNotDependOnOthers (# ms)
  [ RUN      ] Samples.NumbersAreForDropoutOnly
  [       OK ] Samples.NumbersAreForDropoutOnly (# ms)
  [ RUN      ] Samples.NumbersChangeDropout
    skipped: the options ask for no dropout
  [  SKIPPED ] Samples.NumbersChangeDropout
  [==========] 3 checks ran (# ms)
  [  PASSED  ] 2 checks
  [  SKIPPED ] 1 check:
  [  SKIPPED ] Samples.NumbersChangeDropout [M18]
  $ triax plugins test model-gpt --list
  Supports.RefusesWithReasonsAndKeys [M1]
  Supports.AcceptedRequestsPassADryRun [M2]
  Info.IsThatOfTheLayers [M3]
  Descriptions.AreEqualInEachObject [M4]
  Names.AndSitesAreUnique [M5]
  Cuts.CoverEachDimensionOnce [M6]
  Boundaries.AreTakenAsMade [M7]
  Gradients.OfEachLayerAreItsSlope [M8]
  Gradients.OfTheModelAreTheSlopeOfTheLoss [M8]
  Gradients.EachTypeMatchesTheMostPrecise [M8]
  Gradients.HaveTheFactorsOfTheLoss [M9]
  Gradients.AreAdded [M10]
  Order.OfPassesChangesNoBit [M11]
  Order.WholeBackwardsHaveEqualBits [M11]
  Again.WritesTheSameStash [M15]
  CheapRecompute.WritesTheSameStash [M28]
  Repeats.HaveEqualBits [M16]
  Repeats.MayHaveAnEvaluationBetween [M16]
  Passes.ReadNoOldBytes [M12]
  Passes.WriteOnlyTheirTensors [M13]
  Passes.UseTensorsInTheirLifeOnly [M14]
  Passes.TakeEmptyViewsOutsideOfALife [M14]
  Passes.BeginAfterTheirStream [M19]
  SteadyState.DoesNotAllocate [M20]
  DryRun.DoesNotAllocate [M20]
  Samples.DoNotDependOnOthers [M17]
  Samples.NumbersAreForDropoutOnly [M18]
  Samples.NumbersChangeDropout [M18]
  DryRun.CallsTheSameOperations [M21]
  Cost.IsTheCountedFlops [M22]
  Ranks.PostTheSameCollectives [M24]
  Ranks.EqualOneRank [M23]
  Ranks.HaveEqualBits [M24]
  Ranks.PostWhatADryRunPosts [M21]
  Ranks.RepeatForwardsWithEqualBits [M15]
  Ranks.RecomputeCheaplyAlone [M28]
  Padding.HasNoGradient [M25]
  Padding.OfRanksHasNoGradient [M25]
  Stages.HaveTheBitsOfOne [M26]
  RecomputeSteps.WriteTheSameStash [M28]
  Ranks.RunStepsWithEqualBits [M28]
  Generating.TokensEqualAWholeCall [M27]
  Generating.RanksGiveTheLogitsOfOne [M27]
  Generating.LogitsGiveTheLossOfTraining [M27]

A check that the model does not support is skipped:

  $ triax plugins test "$BUILD/tests/templates/plugins/model-template.so" --filter 'Generating.Tokens*' > out.txt; echo $?; times < out.txt
  0
  [==========] 1 check of model-template (heads = 4, hidden = 16, layers = 2, sequence = 8) with kernels-reference
  [ RUN      ] Generating.TokensEqualAWholeCall
    skipped: the model refuses to generate
  [  SKIPPED ] Generating.TokensEqualAWholeCall
  [==========] 1 check ran (# ms)
  [  PASSED  ] 0 checks
  [  SKIPPED ] 1 check:
  [  SKIPPED ] Generating.TokensEqualAWholeCall [M27]

Unsupported requests:

  $ triax plugins test model-gpt --set model.hidden=18
  model-gpt: model.hidden = 18 is not divisible by model.heads = 4: each head has hidden / heads columns
    use hidden 16 or 20, or heads 3 or 6
  [2]
  $ triax plugins test model-gpt --set model.width=18
  --set model.width: model-gpt has no such option
    triax plugins describe {plugins}/model-gpt.so lists its options
  [2]
  $ triax plugins test model-gpt --kernels kernels-sim
  model-gpt: the kernel set does not compute on the host
    use kernels-reference or kernels-cpu
  [2]
  $ triax plugins test model-gpt --kernels comm-local 2>&1 | sed 's/{plugins}.*: //'
  --kernels comm-local: comm-local is a plugin of kind communicator; kind kernels is needed
  $ triax plugins test model-gpt --kernels kernels-nowhere
  --kernels kernels-nowhere: plugin "kernels-nowhere" was not found
    looked in: {plugins}
    installed kernel sets: {names}
    correct the name, or name the plugin's folder with --path or TRIAX_PLUGIN_PATH
  [2]
  $ triax plugins test "$planted" --set model.fault=crash 2>&1 | grep -o 'model-planted: .* crashed'
  model-planted: supports() [M1] crashed

## Planted faults

The report names the values and the clause:

  $ triax plugins test "$planted" --set model.fault=cost --filter 'Cost.*' > out.txt; echo $?; times < out.txt
  1
  [==========] 1 check of model-planted (dropout = 0.25, fault = "cost", heads = 4, hidden = 16, layers = 2, sequence = 8) with kernels-reference
  [ RUN      ] Cost.IsTheCountedFlops
    f64, rank 0: cost() of backward_weight of block 0 is 196608, but its operations count 98304 FLOPs
    f64, rank 0: cost() of backward_weight of block 1 is 196608, but its operations count 98304 FLOPs
    f64: flops_per_sample() gives 655871.9999999999 for a microbatch, but the costs of its layers add up to 852480
    and 24 more
    contract: [M22] cost() is the FLOPs of the matrix products of each pass. The products that attention's backward repeats are left out. On one rank, the costs of all layers add up to flops_per_sample(), for each sample. (triax/model.hpp:#)
  [  FAILED  ] Cost.IsTheCountedFlops (# ms)
  [==========] 1 check ran (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 1 check:
  [  FAILED  ] Cost.IsTheCountedFlops [M22]
  $ triax plugins test "$planted" --set model.fault=short_life --filter 'Passes.UseTensorsInTheirLifeOnly' > out.txt; echo $?; values < out.txt
  1
  [==========] 1 check of model-planted (dropout = #, fault = "short_life", heads = 4, hidden = 16, layers = 2, sequence = 8) with kernels-reference
  [ RUN      ] Passes.UseTensorsInTheirLifeOnly
    f64: if the stash tensor attention.normed of block 0 holds NaN outside of its lifetime (forward_to_input), element 0 of block 0, gradient of attention.qkv.weight is #, must be #
    f64: if the stash tensor attention.out of block 0 holds NaN outside of its lifetime (forward_to_input), element 0 of block 0, gradient of attention.projection.weight is #, must be #
    f64: if the stash tensor mlp.normed of block 0 holds NaN outside of its lifetime (forward_to_input), element 0 of block 0, gradient of mlp.up.weight is #, must be #
    and 13 more
    contract: [M14] A stash tensor or input is used within its Life only. Outside of it, its view may be empty. In training, none has Life::sequence. (triax/model.hpp:#)
  [  FAILED  ] Passes.UseTensorsInTheirLifeOnly (# ms)
  [==========] 1 check ran (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 1 check:
  [  FAILED  ] Passes.UseTensorsInTheirLifeOnly [M14]
  $ triax plugins test "$planted" --set model.fault=input_gradient --filter 'Gradients.OfEachLayer*' > out.txt; echo $?; values < out.txt
  1
  [==========] 1 check of model-planted (dropout = #, fault = "input_gradient", heads = 4, hidden = 16, layers = 2, sequence = 8) with kernels-reference
  [ RUN      ] Gradients.OfEachLayerAreItsSlope
    f64: block 0, input hidden: the gradient along a random direction is #, but the slope of the result # (tolerance #)
    f64: block 0, input hidden: the gradient along a random direction is #, but the slope of the result # (tolerance #)
    f64: block 0, input hidden: the gradient along itself is #, but the slope of the result # (tolerance #)
    and 3 more
    contract: [M8] After the backwards, the gradients of inputs and parameters are the derivatives of the outputs. (triax/model.hpp:#)
  [  FAILED  ] Gradients.OfEachLayerAreItsSlope (# ms)
  [==========] 1 check ran (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 1 check:
  [  FAILED  ] Gradients.OfEachLayerAreItsSlope [M8]
