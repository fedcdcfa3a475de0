# SPDX-License-Identifier: Apache-2.0

# triax plugins test, with calls that do not return

Calls before the first check have the time of a check, four times that of a wait. The command ends with the plugin, the
call and the clause.

  $ calls() { triax plugins test "$BUILD/tests/conformance/plugins/$1-planted.so" --set "$2.fault=$3" --timeout-s 0.5 > out.txt 2>&1; echo "status $?"; sed -E 's/hpp:[0-9]+\)/hpp:#)/' out.txt; }
  $ calls model model hang
  $ calls model model hang_constructor
  $ calls model model hang_destructor
  $ calls comm comm hang_traits
  $ calls kernels kernels hang
  $ calls optim optimizer hang_extension

The same for one that throws:

  $ calls model model throws

As JSON:

  $ triax plugins test "$BUILD/tests/conformance/plugins/model-planted.so" --set model.fault=hang --timeout-s 0.5 --json | sed -E 's/hpp:[0-9]+\)/hpp:#)/'

A call of a check that does not return ends that check:

  $ calls comm comm hang | grep 'did not return' | head -1
