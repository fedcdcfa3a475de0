# SPDX-License-Identifier: Apache-2.0

# triax plugins test, with a planted fault for each clause of models

model-planted has the layers of model-gpt with one fault. Each is found, and its clause is named. Other clauses may be
broken too.

  $ planted=$BUILD/tests/conformance/plugins/model-planted.so
  $ faults() { for fault in $1; do echo "$fault"; triax plugins test "$planted" --set "model.fault=$fault" > out.txt; echo "status $?"; sed -n '/checks:$\|check:$/,$p' out.txt | grep '^\[  FAILED  \] [A-Z]'; done; }

Answers, descriptions and gradients:

  $ faults "no_keys any_layout tie std same_site cut parted input_gradient no_loss_scale overwrites"
  no_keys
  status 1
  [  FAILED  ] Supports.RefusesWithReasonsAndKeys [M1]
  any_layout
  status 1
  [  FAILED  ] Supports.AcceptedRequestsCanBePlanned [M2]
  tie
  status 1
  [  FAILED  ] Info.IsThatOfTheLayers [M3]
  std
  status 1
  [  FAILED  ] Info.IsThatOfTheLayers [M3]
  [  FAILED  ] Descriptions.AreEqualInEachObject [M4]
  same_site
  status 1
  [  FAILED  ] Names.AndSitesAreUnique [M5]
  cut
  status 1
  [  FAILED  ] Cuts.CoverEachDimensionOnce [M6]
  [  FAILED  ] Ranks.EqualOneRank [M23]
  [  FAILED  ] Generating.RanksGiveTheLogitsOfOne [M27]
  parted
  status 1
  [  FAILED  ] Boundaries.AreTakenAsMade [M7]
  input_gradient
  status 1
  [  FAILED  ] Gradients.OfEachLayerAreItsSlope [M8]
  [  FAILED  ] Gradients.OfTheModelAreTheSlopeOfTheLoss [M8]
  no_loss_scale
  status 1
  [  FAILED  ] Gradients.HaveTheFactorsOfTheLoss [M9]
  overwrites
  status 1
  [  FAILED  ] Gradients.OfEachLayerAreItsSlope [M8]
  [  FAILED  ] Gradients.OfTheModelAreTheSlopeOfTheLoss [M8]
  [  FAILED  ] Gradients.AreAdded [M10]

Orders, memory, samples and streams:

  $ faults "last_stash old_bytes beside inputs short_life again counts_calls numbers always_drops never_drops not_ready allocates"
  last_stash
  status 1
  [  FAILED  ] Order.OfPassesChangesNoBit [M11]
  [  FAILED  ] Passes.TakeEmptyViewsOutsideOfALife [M14]
  old_bytes
  status 1
  [  FAILED  ] Supports.AcceptedRequestsCanBePlanned [M2]
  [  FAILED  ] Gradients.OfEachLayerAreItsSlope [M8]
  [  FAILED  ] Gradients.OfTheModelAreTheSlopeOfTheLoss [M8]
  [  FAILED  ] Repeats.HaveEqualBits [M16]
  [  FAILED  ] Passes.ReadNoOldBytes [M12]
  [  FAILED  ] Passes.WriteOnlyTheirTensors [M13]
  [  FAILED  ] Passes.UseTensorsInTheirLifeOnly [M14]
  [  FAILED  ] Passes.TakeEmptyViewsOutsideOfALife [M14]
  [  FAILED  ] Generating.TokensEqualAWholeCall [M27]
  [  FAILED  ] Generating.RanksGiveTheLogitsOfOne [M27]
  [  FAILED  ] Generating.LogitsGiveTheLossOfTraining [M27]
  beside
  status 1
  [  FAILED  ] Passes.WriteOnlyTheirTensors [M13]
  inputs
  status 1
  [  FAILED  ] Gradients.OfEachLayerAreItsSlope [M8]
  [  FAILED  ] Passes.WriteOnlyTheirTensors [M13]
  [  FAILED  ] Passes.TakeEmptyViewsOutsideOfALife [M14]
  short_life
  status 1
  [  FAILED  ] Passes.UseTensorsInTheirLifeOnly [M14]
  [  FAILED  ] Passes.TakeEmptyViewsOutsideOfALife [M14]
  again
  status 1
  [  FAILED  ] Again.WritesTheSameStash [M15]
  counts_calls
  status 1
  [  FAILED  ] Gradients.OfEachLayerAreItsSlope [M8]
  [  FAILED  ] Gradients.OfTheModelAreTheSlopeOfTheLoss [M8]
  [  FAILED  ] Repeats.HaveEqualBits [M16]
  [  FAILED  ] Passes.UseTensorsInTheirLifeOnly [M14]
  numbers
  status 1
  [  FAILED  ] Samples.DoNotDependOnOthers [M17]
  always_drops
  status 1
  [  FAILED  ] Supports.AcceptedRequestsCanBePlanned [M2]
  [  FAILED  ] Samples.NumbersAreForDropoutOnly [M18]
  [  FAILED  ] Generating.TokensEqualAWholeCall [M27]
  [  FAILED  ] Generating.RanksGiveTheLogitsOfOne [M27]
  [  FAILED  ] Generating.LogitsGiveTheLossOfTraining [M27]
  never_drops
  status 1
  [  FAILED  ] Samples.NumbersChangeDropout [M18]
  not_ready
  status 1
  [  FAILED  ] Passes.BeginAfterTheirStream [M19]
  allocates
  status 1
  [  FAILED  ] SteadyState.DoesNotAllocate [M20]
  [  FAILED  ] Planning.DoesNotAllocate [M20]

Plans, ranks, stages and generating:

  $ faults "plan cost no_sum bits padding rank_padding pipeline rows"
  plan
  status 1
  [  FAILED  ] Planning.CallsTheSameOperations [M21]
  [  FAILED  ] Cost.IsTheCountedFlops [M22]
  cost
  status 1
  [  FAILED  ] Cost.IsTheCountedFlops [M22]
  no_sum
  status 1
  [  FAILED  ] Supports.AcceptedRequestsCanBePlanned [M2]
  [  FAILED  ] Planning.DoesNotAllocate [M20]
  [  FAILED  ] Cost.IsTheCountedFlops [M22]
  [  FAILED  ] Ranks.PostTheSameCollectives [M24]
  [  FAILED  ] Ranks.EqualOneRank [M23]
  [  FAILED  ] Ranks.HaveEqualBits [M24]
  [  FAILED  ] Ranks.PostWhatAPlanPosts [M21]
  [  FAILED  ] Padding.OfRanksHasNoGradient [M25]
  [  FAILED  ] Generating.RanksGiveTheLogitsOfOne [M27]
  bits
  status 1
  [  FAILED  ] Ranks.HaveEqualBits [M24]
  padding
  status 1
  [  FAILED  ] Gradients.HaveTheFactorsOfTheLoss [M9]
  [  FAILED  ] Gradients.AreAdded [M10]
  [  FAILED  ] Padding.HasNoGradient [M25]
  [  FAILED  ] Padding.OfRanksHasNoGradient [M25]
  rank_padding
  status 1
  [  FAILED  ] Padding.OfRanksHasNoGradient [M25]
  pipeline
  status 1
  [  FAILED  ] Stages.HaveTheBitsOfOne [M26]
  rows
  status 1
  [  FAILED  ] Generating.TokensEqualAWholeCall [M27]

Descriptions that differ from rank to rank, from object to object and from call to call:

  $ faults "size_by_rank size_by_object size_by_call"
  size_by_rank
  status 1
  [  FAILED  ] Descriptions.AreEqualInEachObject [M4]
  [  FAILED  ] Cuts.CoverEachDimensionOnce [M6]
  [  FAILED  ] Ranks.EqualOneRank [M23]
  [  FAILED  ] Ranks.HaveEqualBits [M24]
  [  FAILED  ] Padding.OfRanksHasNoGradient [M25]
  size_by_object
  status 1
  [  FAILED  ] Descriptions.AreEqualInEachObject [M4]
  [  FAILED  ] Cuts.CoverEachDimensionOnce [M6]
  [  FAILED  ] Gradients.OfEachTypeAreThoseOfTheMostPrecise [M8]
  [  FAILED  ] Gradients.HaveTheFactorsOfTheLoss [M9]
  [  FAILED  ] Gradients.AreAdded [M10]
  [  FAILED  ] Order.OfPassesChangesNoBit [M11]
  [  FAILED  ] Order.WholeBackwardsHaveEqualBits [M11]
  [  FAILED  ] Again.WritesTheSameStash [M15]
  [  FAILED  ] Repeats.HaveEqualBits [M16]
  [  FAILED  ] Passes.ReadNoOldBytes [M12]
  [  FAILED  ] Passes.TakeEmptyViewsOutsideOfALife [M14]
  [  FAILED  ] Passes.BeginAfterTheirStream [M19]
  [  FAILED  ] Ranks.EqualOneRank [M23]
  [  FAILED  ] Ranks.HaveEqualBits [M24]
  [  FAILED  ] Padding.OfRanksHasNoGradient [M25]
  [  FAILED  ] Stages.HaveTheBitsOfOne [M26]
  size_by_call
  status 1
  [  FAILED  ] Descriptions.AreEqualInEachObject [M4]
