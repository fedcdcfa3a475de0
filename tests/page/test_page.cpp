// SPDX-License-Identifier: Apache-2.0
// Pages: structure, and text from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "page/html_text.hpp"
#include "page/page.hpp"

namespace {
using namespace triax::page;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(HtmlText, EscapesMarkupControlsAndOrder) {
  EXPECT_EQ(html_escaped("<script>alert('a & \"b\"')</script>"),
            "&lt;script&gt;alert(&#39;a &amp; &quot;b&quot;&#39;)&lt;/script&gt;");
  EXPECT_EQ(html_escaped("läuft \xE2\x80\xAE\x1b[31m"), "läuft \\u202E\\u001B[31m");
  EXPECT_EQ(html_escaped("\xff"), "\\xFF");
}

TEST(Page, EveryTextIsEscaped) {
  const std::string bad = "<i>\"&";
  Page page(bad, bad);
  page.result(bad);
  page.section(bad);
  page.paragraph(bad);
  page.note(bad);
  page.pairs({{bad, bad}});
  page.table({{bad}, {{bad}}, bad});
  page.figure({bad, "<svg></svg>", bad, {{"", bad}}});
  EXPECT_THAT(page.html(), Not(HasSubstr("<i>")));
}

TEST(Page, NeedsNoOtherFile) {
  const std::string html = Page("a", "b").html();
  for (const char* reference : {"http:", "https:", "src=", "@import", "<link", "url(h"})
    EXPECT_THAT(html, Not(HasSubstr(reference)));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
}

TEST(Page, HasRulesForDarkColoursPaperAndPhones) {
  const std::string html = Page("a", "b").html();
  for (const char* rule : {"prefers-color-scheme: dark", "@media print", "max-width: 560px", "break-inside: avoid"})
    EXPECT_THAT(html, HasSubstr(rule));
}

TEST(Page, ColumnsOfNumbersAreAlignedToTheRight) {
  Page page("a", "b");
  page.table({{"part", "ms", "version"}, {{"step", "1.5", "0.1.0"}, {"loss", "-", "0.2.0"}}});
  EXPECT_THAT(page.html(), HasSubstr("<td class=\"number\">1.5</td><td>0.1.0</td>"));
  EXPECT_THAT(page.html(), HasSubstr("<td class=\"number\">-</td>"));
}

TEST(Page, ListsItsSections) {
  Page page("a", "b");
  page.section("One");
  page.section("Two");
  EXPECT_THAT(page.html(), HasSubstr("<a href=\"#section-2\">Two</a>"));
  EXPECT_THAT(page.html(), HasSubstr("<section id=\"section-2\">\n<h2>Two</h2>"));
}

} // namespace
