// Cuts a stream of text into documents: at the end of each input, and at each line that is the separator.
//
// Threads: one. Ownership: borrows its sink. Blocking: as the sink does. Memory: constant, however long a line is.
// Errors: what the sink throws.
#pragma once

#include <string>
#include <string_view>

namespace triax::data {

/// Gets the text of documents in pieces. A document without text is not reported.
class DocumentSink {
 public:
  virtual ~DocumentSink() = default;
  virtual void text(std::string_view piece) = 0;
  virtual void end_document() = 0;
};

class DocumentSplitter {
 public:
  /// An empty separator splits nothing. The separator's line belongs to no document; it may end in CR LF.
  DocumentSplitter(std::string separator, DocumentSink& sink);
  void feed(std::string_view text);
  /// The end of one input: also the end of its last document.
  void end_input();

 private:
  void separator_byte(char byte);
  void release_line();
  void pass(std::string_view piece);
  void cut();

  std::string separator_; // with a CR at its end, which may be absent
  DocumentSink* sink_;
  bool maybe_separator_ = true; // everything of this line so far is the separator's beginning
  std::size_t matched_ = 0;
  bool has_text_ = false;
};

} // namespace triax::data
