# SPDX-License-Identifier: Apache-2.0

# triax plugins test, with calls that do not return

Calls before the first check have the time of a check, four times that of a wait. The command ends with the plugin, the
call and the clause.

  $ calls() { triax plugins test "$BUILD/tests/conformance/plugins/$1-planted.so" --set "$2.fault=$3" --timeout-s 1 > out.txt 2>&1; echo "status $?"; sed -E -e 's/line [0-9]+/line #/' -e 's#/[^ ]*/(model-planted.so)#\1#' out.txt; }
  $ calls model model hang
  status 2
  model-planted: supports() [M1] did not return within 4 s
    [M1] is in triax/model.hpp, line #; this is a defect of the plugin: use another plugin or version, or report it to its author
  $ calls model model hang_constructor
  status 2
  model-planted: its constructor did not return within 4 s
    this is a defect of the plugin: use another plugin or version, or report it to its author; to debug it: gdb -ex 'set follow-fork-mode child' -ex run --args triax plugins describe model-planted.so
  $ calls model model hang_destructor
  status 2
  model-planted: its destructor did not return within 4 s
    this is a defect of the plugin: use another plugin or version, or report it to its author; to debug it: gdb -ex 'set follow-fork-mode child' -ex run --args triax plugins describe model-planted.so
  $ calls comm comm hang_traits
  status 2
  comm-planted: traits() [C1] did not return within 4 s
    [C1] is in triax/communicator.hpp, line #; this is a defect of the plugin: use another plugin or version, or report it to its author
  $ calls kernels kernels hang
  status 2
  kernels-planted: supports() [K2] did not return within 4 s
    [K2] is in triax/kernels.hpp, line #; this is a defect of the plugin: use another plugin or version, or report it to its author
  $ calls optim optimizer hang_extension
  status 2
  optim-planted: extension() [O19] did not return within 4 s
    [O19] is in triax/optimizer.hpp, line #; this is a defect of the plugin: use another plugin or version, or report it to its author

The same for one that throws:

  $ calls model model throws
  status 2
  model-planted: supports() [M1] throws: its tables are not written yet
    [M1] is in triax/model.hpp, line #; report it to the plugin's author

As JSON:

  $ triax plugins test "$BUILD/tests/conformance/plugins/model-planted.so" --set model.fault=hang --timeout-s 1 --json 2>&1 | sed -E 's/line [0-9]+/line #/'
  model-planted: supports() [M1] did not return within 4 s
    [M1] is in triax/model.hpp, line #; this is a defect of the plugin: use another plugin or version, or report it to its author
  {"errors":[{"code":"plugin-failed","keys":[],"file":null,"line":null,"column":null,"message":"model-planted: supports() [M1] did not return within 4 s","hint":"[M1] is in triax/model.hpp, line #; this is a defect of the plugin: use another plugin or version, or report it to its author"}]}
