# SPDX-License-Identifier: Apache-2.0

# triax plugins test, with a planted fault for each clause of models

model-planted has the layers of model-gpt with one fault. Each is found, and its clause is named, by the checks that the
filter names. Other checks may find it too.

  $ planted=$BUILD/tests/conformance/plugins/model-planted.so
  $ fault() { echo "$1"; triax plugins test "$planted" --set "model.fault=$1" --filter "$2" > out.txt; echo "status $?"; sed -n '/checks:$\|check:$/,$p' out.txt | grep '^\[  FAILED  \] [A-Z]'; }

Answers, descriptions and gradients:

  $ fault no_keys 'Supports.RefusesWithReasonsAndKeys'
  no_keys
  status 1
  [  FAILED  ] Supports.RefusesWithReasonsAndKeys [M1]
  $ fault any_layout 'Supports.AcceptedRequestsPassADryRun'
  any_layout
  status 1
  [  FAILED  ] Supports.AcceptedRequestsPassADryRun [M2]
  $ fault tie 'Info.IsThatOfTheLayers'
  tie
  status 1
  [  FAILED  ] Info.IsThatOfTheLayers [M3]
  $ fault tie_of_first 'Info.IsThatOfTheLayers'
  tie_of_first
  status 1
  [  FAILED  ] Info.IsThatOfTheLayers [M3]
  $ fault tie_reversed 'Info.IsThatOfTheLayers'
  tie_reversed
  status 1
  [  FAILED  ] Info.IsThatOfTheLayers [M3]
  $ fault partial_of_one_side 'Info.IsThatOfTheLayers'
  partial_of_one_side
  status 1
  [  FAILED  ] Info.IsThatOfTheLayers [M3]
  $ fault std 'Info.IsThatOfTheLayers:Descriptions.AreEqualInEachObject'
  std
  status 1
  [  FAILED  ] Info.IsThatOfTheLayers [M3]
  [  FAILED  ] Descriptions.AreEqualInEachObject [M4]
  $ fault same_site 'Names.AndSitesAreUnique'
  same_site
  status 1
  [  FAILED  ] Names.AndSitesAreUnique [M5]
  $ fault cut 'Cuts.CoverEachDimensionOnce:Ranks.EqualOneRank:Generating.RanksGiveTheLogitsOfOne'
  cut
  status 1
  [  FAILED  ] Cuts.CoverEachDimensionOnce [M6]
  [  FAILED  ] Ranks.EqualOneRank [M23]
  [  FAILED  ] Generating.RanksGiveTheLogitsOfOne [M27]
  $ fault cut_twice 'Cuts.CoverEachDimensionOnce'
  cut_twice
  status 1
  [  FAILED  ] Cuts.CoverEachDimensionOnce [M6]
  $ fault padded_columns 'Cuts.CoverEachDimensionOnce'
  padded_columns
  status 1
  [  FAILED  ] Cuts.CoverEachDimensionOnce [M6]
  $ fault partial_over_samples 'Cuts.CoverEachDimensionOnce'
  partial_over_samples
  status 1
  [  FAILED  ] Cuts.CoverEachDimensionOnce [M6]
  $ fault partial_and_cut 'Cuts.CoverEachDimensionOnce'
  partial_and_cut
  status 1
  [  FAILED  ] Cuts.CoverEachDimensionOnce [M6]
  $ fault targets_when_generating 'Boundaries.AreTakenAsMade'
  targets_when_generating
  status 1
  [  FAILED  ] Boundaries.AreTakenAsMade [M7]
  $ fault sharded 'Boundaries.AreTakenAsMade'
  sharded
  status 1
  [  FAILED  ] Boundaries.AreTakenAsMade [M7]
  $ fault input_gradient 'Gradients.OfEachLayerAreItsSlope:Gradients.OfTheModelAreTheSlopeOfTheLoss'
  input_gradient
  status 1
  [  FAILED  ] Gradients.OfEachLayerAreItsSlope [M8]
  [  FAILED  ] Gradients.OfTheModelAreTheSlopeOfTheLoss [M8]
  $ fault no_loss_scale 'Gradients.HaveTheFactorsOfTheLoss'
  no_loss_scale
  status 1
  [  FAILED  ] Gradients.HaveTheFactorsOfTheLoss [M9]
  $ fault overwrites 'Gradients.OfEachLayerAreItsSlope:Gradients.OfTheModelAreTheSlopeOfTheLoss:Gradients.AreAdded'
  overwrites
  status 1
  [  FAILED  ] Gradients.OfEachLayerAreItsSlope [M8]
  [  FAILED  ] Gradients.OfTheModelAreTheSlopeOfTheLoss [M8]
  [  FAILED  ] Gradients.AreAdded [M10]

In some types only:

  $ triax plugins test "$planted" --kernels kernels-cpu --set model.fault=overwrites_in_16_bits --filter 'Gradients.AreAdded' | grep '^\[  FAILED  \].*M10'
  [  FAILED  ] Gradients.AreAdded [M10]

Orders, memory, samples and streams:

  $ fault last_stash 'Order.OfPassesChangesNoBit:Passes.TakeEmptyViewsOutsideOfALife'
  last_stash
  status 1
  [  FAILED  ] Order.OfPassesChangesNoBit [M11]
  [  FAILED  ] Passes.TakeEmptyViewsOutsideOfALife [M14]
  $ fault reads_old_stash 'Passes.*:Repeats.*'
  reads_old_stash
  status 1
  [  FAILED  ] Repeats.HaveEqualBits [M16]
  [  FAILED  ] Passes.ReadNoOldBytes [M12]
  [  FAILED  ] Passes.WriteOnlyTheirTensors [M13]
  [  FAILED  ] Passes.UseTensorsInTheirLifeOnly [M14]
  [  FAILED  ] Passes.TakeEmptyViewsOutsideOfALife [M14]
  $ fault writes_past_the_end 'Passes.WriteOnlyTheirTensors'
  writes_past_the_end
  status 1
  [  FAILED  ] Passes.WriteOnlyTheirTensors [M13]
  $ fault inputs 'Passes.WriteOnly*'
  inputs
  status 1
  [  FAILED  ] Passes.WriteOnlyTheirTensors [M13]
  $ fault short_life 'Passes.UseTensorsInTheirLifeOnly:Passes.TakeEmptyViewsOutsideOfALife'
  short_life
  status 1
  [  FAILED  ] Passes.UseTensorsInTheirLifeOnly [M14]
  [  FAILED  ] Passes.TakeEmptyViewsOutsideOfALife [M14]
  $ fault cache_in_training 'Passes.UseTensorsInTheirLifeOnly'
  cache_in_training
  status 1
  [  FAILED  ] Passes.UseTensorsInTheirLifeOnly [M14]
  $ fault again 'Again.WritesTheSameStash'
  again
  status 1
  [  FAILED  ] Again.WritesTheSameStash [M15]
  $ fault again_alone 'Again.*:Ranks.*'
  again_alone
  status 1
  [  FAILED  ] Ranks.RepeatForwardsWithEqualBits [M15]
  $ fault again_allocates 'SteadyState.*:DryRun.*'
  again_allocates
  status 1
  [  FAILED  ] SteadyState.DoesNotAllocate [M20]
  [  FAILED  ] DryRun.DoesNotAllocate [M20]
  $ fault recompute 'CheapRecompute.WritesTheSameStash'
  recompute
  status 1
  [  FAILED  ] CheapRecompute.WritesTheSameStash [M28]
  $ fault recompute_last 'CheapRecompute.*'; fault recompute_listed_twice 'CheapRecompute.*'; grep twice out.txt | tail -1
  recompute_last
  status 1
  [  FAILED  ] CheapRecompute.WritesTheSameStash [M28]
  recompute_listed_twice
  status 1
  [  FAILED  ] CheapRecompute.WritesTheSameStash [M28]
    recomputed_stash() lists block 1, attention.normed twice
  $ fault recompute_listed_beyond 'CheapRecompute.*'; grep stash out.txt | head -1
  recompute_listed_beyond
  status 1
  [  FAILED  ] CheapRecompute.WritesTheSameStash [M28]
    block 1: recomputed_stash() lists 17, but stash() has 17 tensors
  $ fault recompute_posts 'CheapRecompute.*:Ranks.*'
  recompute_posts
  status 1
  [  FAILED  ] Ranks.RecomputeCheaplyAlone [M28]
  $ fault step 'RecomputeSteps.*:Ranks.RunSteps*'
  step
  status 1
  [  FAILED  ] RecomputeSteps.WriteTheSameStash [M28]
  [  FAILED  ] Ranks.RunStepsWithEqualBits [M28]
  $ fault step_reads_more 'RecomputeSteps.*'; fault step_writes_more 'RecomputeSteps.*'; fault step_missing 'RecomputeSteps.*'; grep 'steps()' out.txt | head -1
  step_reads_more
  status 1
  [  FAILED  ] RecomputeSteps.WriteTheSameStash [M28]
  step_writes_more
  status 1
  [  FAILED  ] RecomputeSteps.WriteTheSameStash [M28]
  step_missing
  status 1
  [  FAILED  ] RecomputeSteps.WriteTheSameStash [M28]
    f64: steps() of block 0: attention.qkv reads attention.normed, which no earlier step writes
  $ fault step_posts 'RecomputeSteps.*:Ranks.*'
  step_posts
  status 1
  [  FAILED  ] Ranks.RunStepsWithEqualBits [M28]
  $ fault counts_calls 'Repeats.*:Passes.UseTensors*'
  counts_calls
  status 1
  [  FAILED  ] Repeats.HaveEqualBits [M16]
  [  FAILED  ] Passes.UseTensorsInTheirLifeOnly [M14]
  $ fault renumbers_samples 'Samples.DoNotDependOnOthers'
  renumbers_samples
  status 1
  [  FAILED  ] Samples.DoNotDependOnOthers [M17]
  $ fault always_drops 'Samples.*'
  always_drops
  status 1
  [  FAILED  ] Samples.NumbersAreForDropoutOnly [M18]
  $ fault never_drops 'Samples.NumbersChangeDropout'
  never_drops
  status 1
  [  FAILED  ] Samples.NumbersChangeDropout [M18]
  $ triax plugins test "$planted" --set model.fault=dropout_without_rate --set model.dropout=0 --filter 'Samples.NumbersAre*' | grep '^\[  FAILED  \].*M18'
  [  FAILED  ] Samples.NumbersAreForDropoutOnly [M18]
  $ for early in not_ready tokens_not_ready weight_not_ready; do fault $early 'Passes.BeginAfterTheirStream'; done
  not_ready
  status 1
  [  FAILED  ] Passes.BeginAfterTheirStream [M19]
  tokens_not_ready
  status 1
  [  FAILED  ] Passes.BeginAfterTheirStream [M19]
  weight_not_ready
  status 1
  [  FAILED  ] Passes.BeginAfterTheirStream [M19]
  $ fault allocates 'SteadyState.DoesNotAllocate:DryRun.DoesNotAllocate'
  allocates
  status 1
  [  FAILED  ] SteadyState.DoesNotAllocate [M20]
  [  FAILED  ] DryRun.DoesNotAllocate [M20]

Dry runs, ranks, stages and generating:

  $ fault dry_run 'DryRun.CallsTheSameOperations:Cost.IsTheCountedFlops'
  dry_run
  status 1
  [  FAILED  ] DryRun.CallsTheSameOperations [M21]
  [  FAILED  ] Cost.IsTheCountedFlops [M22]
  $ fault cost 'Cost.IsTheCountedFlops'
  cost
  status 1
  [  FAILED  ] Cost.IsTheCountedFlops [M22]
  $ fault no_sum 'Ranks.*:Padding.OfRanks*'
  no_sum
  status 1
  [  FAILED  ] Ranks.PostTheSameCollectives [M24]
  [  FAILED  ] Ranks.EqualOneRank [M23]
  [  FAILED  ] Ranks.HaveEqualBits [M24]
  [  FAILED  ] Ranks.PostWhatADryRunPosts [M21]
  [  FAILED  ] Ranks.RepeatForwardsWithEqualBits [M15]
  [  FAILED  ] Ranks.RecomputeCheaplyAlone [M28]
  [  FAILED  ] Padding.OfRanksHasNoGradient [M25]
  [  FAILED  ] Ranks.RunStepsWithEqualBits [M28]
  $ fault replicated_gradients_differ 'Ranks.HaveEqualBits'
  replicated_gradients_differ
  status 1
  [  FAILED  ] Ranks.HaveEqualBits [M24]
  $ fault padding 'Gradients.HaveTheFactorsOfTheLoss:Gradients.AreAdded:Padding.HasNoGradient:Padding.OfRanksHasNoGradient'
  padding
  status 1
  [  FAILED  ] Gradients.HaveTheFactorsOfTheLoss [M9]
  [  FAILED  ] Gradients.AreAdded [M10]
  [  FAILED  ] Padding.HasNoGradient [M25]
  [  FAILED  ] Padding.OfRanksHasNoGradient [M25]
  $ fault rank_padding 'Padding.OfRanksHasNoGradient'
  rank_padding
  status 1
  [  FAILED  ] Padding.OfRanksHasNoGradient [M25]
  $ fault pipeline 'Stages.HaveTheBitsOfOne'
  pipeline
  status 1
  [  FAILED  ] Stages.HaveTheBitsOfOne [M26]
  $ fault rows 'Generating.TokensEqualAWholeCall'
  rows
  status 1
  [  FAILED  ] Generating.TokensEqualAWholeCall [M27]
  $ fault cache_of_call 'Generating.TokensEqualAWholeCall'
  cache_of_call
  status 1
  [  FAILED  ] Generating.TokensEqualAWholeCall [M27]

Descriptions that differ from rank to rank, from object to object and from call to call:

  $ fault size_by_rank 'Descriptions.*:Cuts.*'
  size_by_rank
  status 1
  [  FAILED  ] Descriptions.AreEqualInEachObject [M4]
  [  FAILED  ] Cuts.CoverEachDimensionOnce [M6]
  $ fault size_by_object 'Descriptions.*:Cuts.*'
  size_by_object
  status 1
  [  FAILED  ] Descriptions.AreEqualInEachObject [M4]
  [  FAILED  ] Cuts.CoverEachDimensionOnce [M6]
  $ fault size_by_call 'Descriptions.AreEqualInEachObject'
  size_by_call
  status 1
  [  FAILED  ] Descriptions.AreEqualInEachObject [M4]
