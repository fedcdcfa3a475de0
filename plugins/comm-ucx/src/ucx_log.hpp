// SPDX-License-Identifier: Apache-2.0
// What UCX says while one of its calls runs: its status codes do not say why a call failed, its log does.
//
// Threads: any; each captures the messages of its own calls. Ownership: values. Blocking: never. Errors: none.
#pragma once

#include <string>
#include <vector>

namespace triax::comm_ucx {

/// Keeps the warnings and errors that UCX logs on this thread while it lives. Captures do not nest.
class UcxLogCapture {
 public:
  /// `quiet`: they are not printed either, and from then on nothing that UCX logs in this process is. Otherwise the
  /// user has asked for UCX's log, which is printed as ever, and captured as far as its level lets messages through.
  explicit UcxLogCapture(bool quiet);
  UcxLogCapture(const UcxLogCapture&) = delete;
  UcxLogCapture& operator=(const UcxLogCapture&) = delete;
  ~UcxLogCapture();

  const std::vector<std::string>& messages() const { return messages_; }

 private:
  std::vector<std::string> messages_;
};

} // namespace triax::comm_ucx
