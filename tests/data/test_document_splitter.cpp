// SPDX-License-Identifier: Apache-2.0
// DocumentSplitter gives the same documents however its input is divided.
#include <gtest/gtest.h>

#include <string>

#include "data/document_splitter.hpp"

namespace triax::data {
namespace {

class Collected final : public DocumentSink {
 public:
  void text(std::string_view piece) override { out += piece; }
  void end_document() override { out += "|"; }
  std::string out;
};

std::string split(const std::string& separator, const std::string& text, std::size_t piece) {
  Collected sink;
  DocumentSplitter splitter(separator, sink);
  for (std::size_t i = 0; i < text.size(); i += piece) splitter.feed(std::string_view(text).substr(i, piece));
  splitter.end_input();
  return sink.out;
}

TEST(DocumentSplitter, DoesNotDependOnHowTheTextArrives) {
  const struct {
    const char *separator, *text, *expected;
  } cases[] = {
      {"", "a\n%\nb", "a\n%\nb|"},
      {"%", "a\n%\nb", "a\n|b|"},
      {"%", "%\na\n%", "a\n|"},
      {"%", "a\r\n%\r\nb", "a\r\n|b|"},
      {"%", "a\n%\r", "a\n|"},
      {"%", "a\n%\rb\n%%\n%x\n x%\n", "a\n%\rb\n%%\n%x\n x%\n|"},
      {"%", "a\n%", "a\n|"},
      {"%", "\n\n", "\n\n|"},
      {"%", "", ""},
      {"<end>", "a\n<en\n<end>\n<end>>\n<end", "a\n<en\n|<end>>\n<end|"},
      {"<end>", "<<end>\n<end>", "<<end>\n|"},
  };
  for (const auto& c : cases) {
    for (const std::size_t piece : {1, 2, 3, 5, 1000}) EXPECT_EQ(split(c.separator, c.text, piece), c.expected);
  }
}

TEST(DocumentSplitter, AnInputsEndEndsItsLine) {
  Collected sink;
  DocumentSplitter splitter("%", sink);
  for (const char* input : {"a", "%", "b\n%", "%\nc"}) {
    splitter.feed(input);
    splitter.end_input();
  }
  EXPECT_EQ(sink.out, "a|b\n|c|");
}

} // namespace
} // namespace triax::data
