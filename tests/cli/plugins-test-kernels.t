# SPDX-License-Identifier: Apache-2.0

# triax plugins test, with kernel sets

Times differ from run to run.

  $ times() { sed -E -e 's/\([0-9]+ ms\)/(# ms)/' -e 's/hpp:[0-9]+\)/hpp:#)/'; }
  $ planted="$BUILD/tests/conformance/plugins/kernels-planted.so"

The checks, and the clauses that they test:

  $ triax plugins test kernels-cpu --list
  Request.IsAcceptedOrRefusedWithReasons [K1]
  Calls.AreRefusedWithReasons [K2]
  DryRun.NeedsNoMemory [K3]
  Device.IsOfTheKind [K4]
  Memory.OnlyOutputsAreWritten [K5]
  Scratch.IsEnough [K6]
  Scratch.IsWrittenBeforeItIsRead [K7]
  Outputs.AreNotRead [K8]
  SteadyState.DoesNotAllocate [K9]
  Targets.AreAddedTo [K10]
  Outputs.MayBeInputs [K11]
  Views.BeginAtAnyElement [K12]
  Working.IsTheRoundedMaster [K13]
  Backward.IsTheDerivativeOfTheForward [K14]
  Bits.AreEqualInEveryCallAndObject [K15]
  Bits.AreEqualAtEveryAlignedAddress [K16]
  Bits.OfAnElementAreEqualAnywhere [K17]
  Bits.AreEqualWithEveryNumberOfThreads [K18]
  Stream.OrderIsKept [K19]
  Bits.AreRepeatedByPrimitives [K56]
  Dropout.MaskIsThatOfTheNumbering [K20]
  Gemm.IsItsFormula [K21]
  BiasAdd.IsItsFormula [K22]
  BiasBwd.IsItsFormula [K23]
  Add.IsItsFormula [K24]
  Dropout.IsItsFormula [K25]
  ActFwd.IsItsFormula [K26]
  ActBwd.IsItsFormula [K27]
  NormFwd.IsItsFormula [K28]
  NormBwdInput.IsItsFormula [K29]
  NormBwdWeight.IsItsFormula [K30]
  SoftmaxFwd.IsItsFormula [K31]
  SoftmaxBwd.IsItsFormula [K32]
  SoftmaxFromLse.IsItsFormula [K33]
  AttentionDelta.IsItsFormula [K34]
  AttentionMerge.IsItsFormula [K35]
  Rope.IsItsFormula [K36]
  EmbedFwd.IsItsFormula [K37]
  EmbedBwd.IsItsFormula [K38]
  XentMax.IsItsFormula [K39]
  XentSums.IsItsFormula [K40]
  XentLoss.IsItsFormula [K41]
  XentBwd.IsItsFormula [K42]
  SumSquares.IsItsFormula [K43]
  AdamW.IsItsFormula [K44]
  Sgd.IsItsFormula [K45]
  StepControl.IsItsFormula [K46]
  LinearFwd.IsItsFormula [K47]
  LinearBwdInput.IsItsFormula [K48]
  LinearBwdWeight.IsItsFormula [K49]
  BiasDropoutAdd.IsItsFormula [K50]
  BiasDropoutAddNorm.IsItsFormula [K51]
  AttentionFwd.IsItsFormula [K52]
  AttentionBwd.IsItsFormula [K53]
  XentFused.IsItsFormula [K54]
  MultiAdamW.IsItsFormula [K55]

A set that computes nothing skips the checks of values:

  $ triax plugins test kernels-sim > out.txt; echo $?; times < out.txt | grep 'PASSED\|SKIPPED.*checks'; times < out.txt | sed -n '/RUN.*Add\./,/SKIPPED.*Add/p'
  0
  [  PASSED  ] 7 checks
  [  SKIPPED ] 49 checks:
  [ RUN      ] BiasAdd.IsItsFormula
    skipped: kernels-sim models the time of operations, but computes nothing
  [  SKIPPED ] BiasAdd.IsItsFormula
  [ RUN      ] Add.IsItsFormula
    skipped: kernels-sim models the time of operations, but computes nothing
  [  SKIPPED ] Add.IsItsFormula
  [ RUN      ] BiasDropoutAdd.IsItsFormula
    skipped: kernels-sim models the time of operations, but computes nothing
  [  SKIPPED ] BiasDropoutAdd.IsItsFormula

A kernel set without a fault:

  $ triax plugins test "$planted" --filter 'Add.*:BiasBwd.*:Bits.*Threads' > out.txt; echo $?; times < out.txt
  0
  [==========] 3 checks of kernels-planted
  [ RUN      ] Bits.AreEqualWithEveryNumberOfThreads
  [       OK ] Bits.AreEqualWithEveryNumberOfThreads (# ms)
  [ RUN      ] BiasBwd.IsItsFormula
  [       OK ] BiasBwd.IsItsFormula (# ms)
  [ RUN      ] Add.IsItsFormula
  [       OK ] Add.IsItsFormula (# ms)
  [==========] 3 checks ran (# ms)
  [  PASSED  ] 3 checks

## Planted faults

The report names the case, the values and the clause:

  $ triax plugins test "$planted" --set kernels.fault=embedding --filter 'EmbedFwd.*' > out.txt; echo $?; times < out.txt
  1
  [==========] 1 check of kernels-planted
  [ RUN      ] EmbedFwd.IsItsFormula
    f32 embed_fwd/range with padding: y: 66 of 462 elements differ by more than 1.4641009569168092e-05; element 149 is 1.486931324005127, must be 0
    f64 embed_fwd/range with padding: y: 66 of 462 elements differ by more than 1.464100956916809e-12; element 149 is 1.4869313836097717, must be 0
    contract: [K37] y[s, b, :] = table[token - begin] for tokens i32 [s, b] in [begin, begin + valid), zeros for others. table [rows, h] with rows >= valid. (triax/kernel_ops.hpp:#)
  [  FAILED  ] EmbedFwd.IsItsFormula (# ms)
  [==========] 1 check ran (# ms)
  [  PASSED  ] 0 checks
  [  FAILED  ] 1 check:
  [  FAILED  ] EmbedFwd.IsItsFormula [K37]

Every fault is found:

  $ fault() { echo "$1"; triax plugins test "$planted" --set "kernels.fault=$1" --filter "$2" > out.txt; echo "status $?"; sed -n '/checks:$\|check:$/,$p' out.txt | grep '^\[  FAILED  \] [A-Z]'; }
  $ fault no_message 'Request.*'; fault short_keys 'Request.*'; fault per_object 'Request.*'; fault refuses_silently 'Calls.*'
  no_message
  status 1
  [  FAILED  ] Request.IsAcceptedOrRefusedWithReasons [K1]
  short_keys
  status 1
  [  FAILED  ] Request.IsAcceptedOrRefusedWithReasons [K1]
  per_object
  status 1
  [  FAILED  ] Request.IsAcceptedOrRefusedWithReasons [K1]
  refuses_silently
  status 1
  [  FAILED  ] Calls.AreRefusedWithReasons [K2]
  $ fault plan_reads 'DryRun.*'; fault scratch_by_address 'DryRun.*'; fault no_threads 'Device.*'
  plan_reads
  status 1
  [  FAILED  ] DryRun.NeedsNoMemory [K3]
  scratch_by_address
  status 1
  [  FAILED  ] DryRun.NeedsNoMemory [K3]
  no_threads
  status 1
  [  FAILED  ] Device.IsOfTheKind [K4]
  $ fault writes_input 'Memory.*'; fault writes_beside 'Memory.*'; fault writes_padding 'Memory.*'; fault scratch_end 'Scratch.*'; fault scratch_kept 'Scratch.*'; fault reads_output 'Outputs.*'; fault allocates 'SteadyState.*'
  writes_input
  status 1
  [  FAILED  ] Memory.OnlyOutputsAreWritten [K5]
  writes_beside
  status 1
  [  FAILED  ] Memory.OnlyOutputsAreWritten [K5]
  writes_padding
  status 1
  [  FAILED  ] Memory.OnlyOutputsAreWritten [K5]
  scratch_end
  status 1
  [  FAILED  ] Scratch.IsEnough [K6]
  scratch_kept
  status 1
  [  FAILED  ] Scratch.IsWrittenBeforeItIsRead [K7]
  reads_output
  status 1
  [  FAILED  ] Outputs.AreNotRead [K8]
  allocates
  status 1
  [  FAILED  ] SteadyState.DoesNotAllocate [K9]
  $ fault overwrites 'Targets.*:BiasBwd.*'; fault in_place 'Add.*:Outputs.MayBeInputs'; fault aligned_only 'BiasAdd.*:Views.*'; fault derivative 'Backward.*:ActBwd.*'; fault truncates 'Working.*:AdamW.*'
  overwrites
  status 1
  [  FAILED  ] Targets.AreAddedTo [K10]
  [  FAILED  ] BiasBwd.IsItsFormula [K23]
  in_place
  status 1
  [  FAILED  ] Outputs.MayBeInputs [K11]
  aligned_only
  status 1
  [  FAILED  ] Views.BeginAtAnyElement [K12]
  derivative
  status 1
  [  FAILED  ] Backward.IsTheDerivativeOfTheForward [K14]
  [  FAILED  ] ActBwd.IsItsFormula [K27]
  truncates
  status 1
  [  FAILED  ] Working.IsTheRoundedMaster [K13]
  [  FAILED  ] AdamW.IsItsFormula [K44]
  $ fault counts_calls 'Bits.AreEqualInEvery*'; fault by_address 'Bits.AreEqualAtEvery*'; fault tail 'Add.*:Bits.OfAn*'; fault by_threads 'BiasBwd.*:Bits.*Threads'; fault fused 'LinearFwd.*:Bits.*Primitives'
  counts_calls
  status 1
  [  FAILED  ] Bits.AreEqualInEveryCallAndObject [K15]
  by_address
  status 1
  [  FAILED  ] Bits.AreEqualAtEveryAlignedAddress [K16]
  tail
  status 1
  [  FAILED  ] Bits.OfAnElementAreEqualAnywhere [K17]
  by_threads
  status 1
  [  FAILED  ] Bits.AreEqualWithEveryNumberOfThreads [K18]
  fused
  status 1
  [  FAILED  ] Bits.AreRepeatedByPrimitives [K56]
  $ fault repeats_changes 'Bits.*Primitives'
  repeats_changes
  status 1
  [  FAILED  ] Bits.AreRepeatedByPrimitives [K56]
  $ fault dropout 'Dropout.*'; fault dropout_first 'Dropout.Mask*'; fault mask 'SoftmaxFwd.*:AttentionFwd.*'; fault embedding 'EmbedFwd.*'; fault padding 'XentSums.*:XentFused.*'; fault scalars 'XentBwd.*'; fault norm_eps 'NormFwd.*:BiasDropoutAddNorm.*'; fault adamw_eps 'AdamW.*:MultiAdamW.*'; fault crash 'Add.*'; fault throws 'Add.*'
  dropout
  status 1
  [  FAILED  ] Dropout.MaskIsThatOfTheNumbering [K20]
  [  FAILED  ] Dropout.IsItsFormula [K25]
  dropout_first
  status 1
  [  FAILED  ] Dropout.MaskIsThatOfTheNumbering [K20]
  mask
  status 1
  [  FAILED  ] SoftmaxFwd.IsItsFormula [K31]
  [  FAILED  ] AttentionFwd.IsItsFormula [K52]
  embedding
  status 1
  [  FAILED  ] EmbedFwd.IsItsFormula [K37]
  padding
  status 1
  [  FAILED  ] XentSums.IsItsFormula [K40]
  [  FAILED  ] XentFused.IsItsFormula [K54]
  scalars
  status 1
  [  FAILED  ] XentBwd.IsItsFormula [K42]
  norm_eps
  status 1
  [  FAILED  ] NormFwd.IsItsFormula [K28]
  [  FAILED  ] BiasDropoutAddNorm.IsItsFormula [K51]
  adamw_eps
  status 1
  [  FAILED  ] AdamW.IsItsFormula [K44]
  [  FAILED  ] MultiAdamW.IsItsFormula [K55]
  crash
  status 1
  [  FAILED  ] Add.IsItsFormula [K24]
  throws
  status 1
  [  FAILED  ] Add.IsItsFormula [K24]

A set that repeats no fused operation passes nothing:

  $ triax plugins test "$planted" --set kernels.fault=repeats_none --filter 'Bits.*Primitives' > out.txt; echo $?; grep skipped out.txt
  0
    skipped: kernels-planted repeats no fused operation: supports() and RepeatLimits refuse each of them
