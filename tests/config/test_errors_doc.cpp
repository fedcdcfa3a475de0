// SPDX-License-Identifier: Apache-2.0
// docs/errors.md matches the table of error codes; UPDATE_GOLDEN=1 rewrites it.
#include <gtest/gtest.h>

#include <sstream>

#include "support/golden.hpp"
#include "triax/error.hpp"

namespace triax {
namespace {

const char* const kErrorsIntroduction = R"(# Errors

Triax reports all errors of a run before it starts. An error begins with the location of a configuration key: file, line
and column, or the flag that sets the key. The other keys that the error depends on follow on separate lines, then
what to do next:

```
run.toml:12:9: model.heads = 5 is not divisible by parallel.tensor = 2: each tensor rank has whole heads
  parallel.tensor is set at run.toml:20:10
  use heads 4 or 6, or tensor 1 or 5
```

Triax prints the first 20 errors and the number of the others. With `--json`, the object on stdout has them as the list
`errors`, and the number of the others as `more_errors`. Errors of the command line have the same form. The exit status
is 2, or 1 if the request is valid and has no result (`triax plan`, `triax fit`). What goes wrong after a command has
begun, such as a file that cannot be written, is the string `problem` instead (exit status 1).

| key | meaning |
|---|---|
| `code` | the kind of the error, one of the table below |
| `keys` | the configuration keys, flags and arguments that the error depends on; may be empty |
| `file`, `line`, `column` | location of the first key that is set in a file, or of an error in another file. `file` is the flag if a flag sets it (`--set`), or a file or folder that cannot be used; a value that does not exist is null |
| `message` | what is wrong |
| `hint` | what to do next; may be empty |

## Codes

Codes do not change; later versions add codes. Plugins use the same codes. This page is generated
(`UPDATE_GOLDEN=1 ctest -R ErrorsDoc`). Do not edit it.

| code | meaning | what to do |
|---|---|---|
)";

TEST(ErrorsDoc, IsCurrent) {
  std::ostringstream out;
  out << kErrorsIntroduction;
  for (const ErrorCodeInfo& info : error_codes())
    out << text("| `{}` | {} | {} |\n", info.name, info.meaning, info.action);
  test::expect_golden(TRIAX_SOURCE_DIR "/docs/errors.md", out.str());
}

} // namespace
} // namespace triax
