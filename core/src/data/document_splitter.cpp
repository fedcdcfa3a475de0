// SPDX-License-Identifier: Apache-2.0
#include "data/document_splitter.hpp"

#include <algorithm>

namespace triax::data {

DocumentSplitter::DocumentSplitter(std::string separator, DocumentSink& sink)
    : separator_(std::move(separator)), sink_(&sink) {
  if (!separator_.empty()) separator_ += '\r';
}

void DocumentSplitter::feed(std::string_view text) {
  if (separator_.empty()) return pass(text);
  while (!text.empty()) {
    if (maybe_separator_) {
      separator_byte(text.front());
      text.remove_prefix(1);
      continue;
    }
    const std::size_t line_end = text.find('\n');
    const std::size_t taken = line_end == std::string_view::npos ? text.size() : line_end + 1;
    pass(text.substr(0, taken));
    text.remove_prefix(taken);
    maybe_separator_ = line_end != std::string_view::npos;
  }
}

void DocumentSplitter::separator_byte(char byte) {
  const bool whole = matched_ + 1 >= separator_.size(); // the separator, with or without CR
  if (byte == '\n' && whole) {
    matched_ = 0;
    cut();
  } else if (matched_ < separator_.size() && byte == separator_[matched_]) {
    ++matched_;
  } else {
    release_line();
    pass({&byte, 1});
    maybe_separator_ = byte == '\n';
  }
}

void DocumentSplitter::release_line() {
  pass(std::string_view(separator_).substr(0, matched_));
  matched_ = 0;
}

void DocumentSplitter::end_input() {
  const bool separator_line = !separator_.empty() && maybe_separator_ && matched_ + 1 >= separator_.size();
  if (separator_line) {
    matched_ = 0;
  } else {
    release_line();
  }
  maybe_separator_ = true;
  cut();
}

void DocumentSplitter::pass(std::string_view piece) {
  if (piece.empty()) return;
  has_text_ = true;
  sink_->text(piece);
}

void DocumentSplitter::cut() {
  if (has_text_) sink_->end_document();
  has_text_ = false;
}

} // namespace triax::data
