// SPDX-License-Identifier: Apache-2.0
// Results as text and as JUnit XML.
#include <gmock/gmock.h>

#include <sstream>
#include <string>

#include "triax/conformance/output.hpp"

namespace {

using namespace triax::conformance;
using ::testing::HasSubstr;

const std::vector<Result> kResults = {
    {"A.Good", "C1", Outcome::passed, {}, {}, 0.0101},
    {"A.Left", "C2", Outcome::skipped, {}, "no \"network\"", 0},
    {"B.Bad", "C10", Outcome::failed, {"1 < 2\nand more"}, {}, 2},
};

TEST(TextOutput, IsThatOfGoogleTestWithTheClause) {
  std::ostringstream to;
  TextOutput output(to, "comm-mine");
  output.begin(kResults.size());
  const Listener listener = output.listener();
  for (const Result& result : kResults) listener.ended(result);
  output.end(kResults);
  EXPECT_THAT(to.str(), HasSubstr("[==========] 3 checks of comm-mine\n[       OK ] A.Good (10 ms)\n"
                                  "  skipped: no \"network\"\n[  SKIPPED ] A.Left\n"
                                  "  1 < 2\n    and more\n  contract: [C10] Any number of calls may be in flight. "
                                  "(triax/communicator.hpp:"));
  EXPECT_THAT(to.str(), HasSubstr("[  FAILED  ] B.Bad (2000 ms)\n[==========] 3 checks ran (2010 ms)\n"
                                  "[  PASSED  ] 1 check\n[  SKIPPED ] 1 check:\n[  SKIPPED ] A.Left [C2]\n"
                                  "[  FAILED  ] 1 check:\n[  FAILED  ] B.Bad [C10]\n"));
}

TEST(TextOutput, DoesNotControlATerminal) {
  std::ostringstream to;
  TextOutput output(to, "comm-mine");
  output.listener().ended({"A.Bad", "C1", Outcome::failed, {"\x1b[31m\nred \xff"}, {}, 0});
  output.listener().ended({"A.Left", "C1", Outcome::skipped, {}, "no \x1b[0m", 0});
  EXPECT_THAT(to.str(), HasSubstr("  \\u001B[31m\n    red \\xFF\n"));
  EXPECT_THAT(to.str(), HasSubstr("  skipped: no \\u001B[0m\n"));
}

TEST(JUnit, EscapesTextsAndCountsOutcomes) {
  const std::string xml = junit_xml("comm-mine", kResults);
  EXPECT_THAT(xml, HasSubstr("<testsuite name=\"comm-mine\" tests=\"3\" failures=\"1\" skipped=\"1\" errors=\"0\""));
  EXPECT_THAT(xml, HasSubstr("<testcase classname=\"comm-mine.A\" name=\"Good\" time=\"0.0101\"/>"));
  EXPECT_THAT(xml, HasSubstr("<skipped message=\"no &quot;network&quot;\"/>"));
  EXPECT_THAT(xml, HasSubstr("<failure message=\"1 &lt; 2&#10;and more\">[C10] "));
}

/// A file that other programs can read, whatever a check prints.
TEST(JUnit, IsXmlWhateverAFailureSays) {
  const std::string xml =
      junit_xml("comm-mine", {{"A.Bad", "C1", Outcome::failed, {"\x1b[31m \xff \"a\" \u00e9"}, {}, 0}});
  EXPECT_THAT(xml, HasSubstr("message=\"\uFFFD[31m \uFFFD &quot;a&quot; \u00e9\""));
}

} // namespace
