// SPDX-License-Identifier: Apache-2.0
// Splits text into documents: at the end of each input, and at each line that equals the separator.
//
// Memory: constant, also for long lines. Errors: those of the sink.
#pragma once

#include <string>
#include <string_view>

namespace triax::data {

/// Receives the text of documents in pieces. Empty documents are not reported.
class DocumentSink {
 public:
  virtual ~DocumentSink() = default;
  virtual void text(std::string_view piece) = 0;
  virtual void end_document() = 0;
};

class DocumentSplitter {
 public:
  /// An empty separator does not split. The separator's line is not part of a document; it may end in CR LF.
  DocumentSplitter(std::string separator, DocumentSink& sink);
  void feed(std::string_view text);
  /// Ends the input and its last document.
  void end_input();

 private:
  void separator_byte(char byte);
  void release_line();
  void pass(std::string_view piece);
  void cut();

  std::string separator_; // followed by a CR, which is optional in the text
  DocumentSink* sink_;
  bool maybe_separator_ = true; // the line so far is a prefix of the separator
  std::size_t matched_ = 0;
  bool has_text_ = false;
};

} // namespace triax::data
