// SPDX-License-Identifier: Apache-2.0
// The table of options, the names of faults, and the README say the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "fault.hpp"
#include "support/loaded_communicator.hpp"

namespace triax::comm_faulty {
namespace {

using testing::HasSubstr;

const plugin::Library& library() {
  return plugin::load(test::plugin_file("comm-faulty"), CommBackend::kKind);
}

std::string readme() {
  std::ifstream in(TRIAX_SOURCE_DIR "/plugins/comm-faulty/README.md");
  return {std::istreambuf_iterator<char>(in), {}};
}

/// "none", "delay" and so on, of the option table.
std::vector<std::string> choices() {
  const triax_option* const option = plugin::find_option(library(), "fault");
  std::vector<std::string> out;
  if (!option) return out;
  const std::string_view all = option->choices;
  for (std::size_t begin = 0; begin <= all.size();) {
    const std::size_t end = std::min(all.find('|', begin), all.size());
    out.emplace_back(all.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

/// The option table and the enumeration have the same faults, in the same order.
TEST(Options, EveryChoiceIsAFault) {
  const std::vector<std::string> all = choices();
  ASSERT_EQ(all.size(), static_cast<std::size_t>(Fault::refuse) + 1);
  for (std::size_t i = 0; i < all.size(); ++i) {
    Options options;
    options.set("fault", all[i]);
    test::set_defaults(library(), options);
    EXPECT_EQ(FaultOptions::read(options).fault, static_cast<Fault>(i)) << all[i];
    EXPECT_EQ(name_of(static_cast<Fault>(i)), all[i]);
  }
  EXPECT_STREQ(name_of(static_cast<Fault>(all.size())), "unknown");
}

TEST(Options, AreAllInTheReadme) {
  const std::string text = readme();
  for (const std::string& choice : choices()) EXPECT_THAT(text, HasSubstr("`" + choice + "`"));
  for (const triax_option& option : library().options) {
    EXPECT_THAT(text, HasSubstr(triax::text("- **{}**", option.name)));
    EXPECT_THAT(text, HasSubstr(triax::text("\n{} = ", option.name))) << "in the example";
  }
}

TEST(Options, HaveTheDefaultsOfNoFault) {
  Options options;
  test::set_defaults(library(), options);
  const FaultOptions read = FaultOptions::read(options), none;
  EXPECT_EQ(read.fault, Fault::none);
  EXPECT_EQ(read.rank, none.rank);
  EXPECT_EQ(read.axis, none.axis);
  EXPECT_EQ(read.at, none.at);
  EXPECT_EQ(read.probability, none.probability);
  EXPECT_EQ(read.seed, none.seed);
}

} // namespace
} // namespace triax::comm_faulty
