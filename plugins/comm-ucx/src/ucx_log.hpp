// SPDX-License-Identifier: Apache-2.0
// Captures UCX's log during a call; the log gives the cause that a status code lacks.
//
// Threads: any; each captures the messages of its calls. Ownership: values. Blocking: never. Errors: none.
#pragma once

#include <string>
#include <vector>

namespace triax::comm_ucx {

/// Keeps the warnings and errors that UCX logs on this thread while it lives. Captures do not nest.
class UcxLogCapture {
 public:
  /// `quiet`: disables UCX's log output, except fatal errors, for the rest of the process; the first capture decides.
  /// Otherwise the output is unchanged, and captured messages are limited by UCX_LOG_LEVEL.
  explicit UcxLogCapture(bool quiet);
  UcxLogCapture(const UcxLogCapture&) = delete;
  UcxLogCapture& operator=(const UcxLogCapture&) = delete;
  ~UcxLogCapture();

  const std::vector<std::string>& messages() const { return messages_; }

 private:
  std::vector<std::string> messages_;
};

} // namespace triax::comm_ucx
