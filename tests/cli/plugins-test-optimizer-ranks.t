# SPDX-License-Identifier: Apache-2.0

# triax plugins test, with optimizers on ranks that divide parameters

optim-planted-norms divides each gradient by its norm over the whole parameter, with one fault. Each is found, and its
clause is named, by the checks that the filter names. Other checks may find it too.

  $ planted=$BUILD/tests/conformance/plugins/optim-planted-norms.so
  $ fault() { echo "$1"; triax plugins test "$planted" --set "optimizer.fault=$1" --filter "$2" > out.txt; echo "status $?"; sed -n '/checks:$\|check:$/,$p' out.txt | grep '^\[  FAILED  \] [A-Z]'; }

Without a fault:

  $ triax plugins test "$planted" > out.txt; echo $?; grep 'PASSED\|FAILED' out.txt
  0
  [  PASSED  ] 26 checks

Sums over the wrong ranks:

  $ fault ignores_group 'Ranks.*'
  ignores_group
  status 1
  [  FAILED  ] Ranks.EqualOneRank [O20]
  [  FAILED  ] Ranks.HaveEqualBits [O21]
  $ fault wrong_group 'Ranks.EqualOneRank'
  wrong_group
  status 1
  [  FAILED  ] Ranks.EqualOneRank [O20]
  $ fault ignores_cuts 'Ranks.EqualOneRank'
  ignores_cuts
  status 1
  [  FAILED  ] Ranks.EqualOneRank [O20]
  $ fault ignores_sharded 'Ranks.EqualOneRank:Sharding.*'
  ignores_sharded
  status 1
  [  FAILED  ] Ranks.EqualOneRank [O20]
  [  FAILED  ] Sharding.ChangesNoBit [O22]
  $ fault differs_by_rank 'Ranks.*'
  differs_by_rank
  status 1
  [  FAILED  ] Ranks.EqualOneRank [O20]
  [  FAILED  ] Ranks.HaveEqualBits [O21]

Ranks that post different collectives. None of them waits for another one:

  $ fault order_by_rank 'Ranks.PostTheSameCollectives'
  order_by_rank
  status 1
  [  FAILED  ] Ranks.PostTheSameCollectives [O23]
  $ grep -o 'call 0 of a step.*' out.txt | head -1
  call 0 of a step on a communicator is all_gather of 1 f64 over tensor on rank 1, but all_gather of 1 f64 over data on rank 0 of its tensor group
  $ fault empty_parts 'Ranks.PostTheSameCollectives'
  empty_parts
  status 1
  [  FAILED  ] Ranks.PostTheSameCollectives [O23]
  $ fault claims_elementwise 'Ranks.PostTheSameCollectives:Update.OfPartsEqualsTheWhole'
  claims_elementwise
  status 1
  [  FAILED  ] Update.OfPartsEqualsTheWhole [O4]
  [  FAILED  ] Ranks.PostTheSameCollectives [O23]
  $ fault order_in_steps 'Ranks.PostWhatADryRunPosts'
  order_in_steps
  status 1
  [  FAILED  ] Ranks.PostWhatADryRunPosts [O16]
  $ grep -o 'call 0 of a step.*' out.txt
  call 0 of a step on a communicator is all_gather of 1 f64 over tensor, but all_gather of 1 f64 over data in its dry run
  $ fault less_in_steps 'Ranks.PostWhatADryRunPosts'
  less_in_steps
  status 1
  [  FAILED  ] Ranks.PostWhatADryRunPosts [O16]

The other checks of ranks do not run if dry runs show that ranks would wait for each other:

  $ triax plugins test "$planted" --set optimizer.fault=order_by_rank --filter 'Ranks.EqualOneRank' | sed -n '3p'
    2 tensor ranks, 2 data ranks: not run, because the ranks post different collectives: see the check Ranks.PostTheSameCollectives
