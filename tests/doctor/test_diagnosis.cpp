// SPDX-License-Identifier: Apache-2.0
// Diagnosis: time limits, JSON, process isolation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "doctor/diagnosis.hpp"
#include "plugin/scratch.hpp"

namespace triax::doctor {

namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

Diagnosis diagnosis_of(const char* name) {
  return diagnose(fixture(name).string(), {});
}

/// "check: text" of each problem.
std::vector<std::string> problems_of(const Diagnosis& diagnosis) {
  std::vector<std::string> out;
  for (const Check& check : diagnosis.checks)
    if (check.outcome == Outcome::problem) out.push_back(check.name + ": " + check.text);
  return out;
}

TEST(Diagnosis, OfAHealthyPluginHasNoProblemAndLoadsNothingHere) {
  const Diagnosis diagnosis = diagnosis_of("honest");
  EXPECT_THAT(problems_of(diagnosis), ElementsAre());
  EXPECT_EQ(diagnosis.problems(), 0U);
  EXPECT_EQ(diagnosis.checks.back().name, "object");
  EXPECT_FALSE(plugin::is_loaded(fixture("honest")));
}

TEST(Diagnosis, EndsCallsThatDoNotReturn) {
  const plugin::CallLimits limits{std::chrono::seconds(2), std::chrono::seconds(2)};
  EXPECT_THAT(problems_of(diagnose(fixture("looping-load").string(), {}, limits)),
              ElementsAre("load: its library initializer did not return within 2 s"));
  EXPECT_THAT(problems_of(diagnose(fixture("looping-create").string(), {}, limits)),
              ElementsAre("object: its constructor did not return within 2 s"));
}

TEST(Diagnosis, EveryProblemHasANextStep) {
  std::size_t problems = 0;
  for (const auto& entry : fs::directory_iterator(FIXTURES)) {
    if (entry.path().stem().string().starts_with("looping")) continue; // above
    const Diagnosis diagnosis = diagnose(entry.path().string(), {});
    for (const Check& check : diagnosis.checks) {
      if (check.outcome != Outcome::problem) continue;
      ++problems;
      EXPECT_NE(check.next, "") << diagnosis.plugin << ": " << check.name << ": " << check.text;
    }
  }
  EXPECT_GT(problems, 30U) << "the fixtures are not built";
}

TEST(Diagnosis, IsOneJsonObject) {
  const auto json = nlohmann::json::parse(to_json(diagnosis_of("several-faults")));
  EXPECT_FALSE(json.at("healthy").get<bool>());
  EXPECT_EQ(json.at("problems"), 5);
  EXPECT_EQ(json.at("file"), fixture("several-faults").string());
  const auto& checks = json.at("checks");
  const auto is_name = [](const auto& check) { return check.at("check") == "name"; };
  const auto name = std::ranges::find_if(checks, is_name);
  ASSERT_NE(name, checks.end());
  EXPECT_EQ(name->at("outcome"), "problem");
  EXPECT_NE(name->at("next"), "");
}

TEST(Diagnosis, OfAMissingFileShowsWhatIsSimilarThere) {
  const Scratch folder;
  fs::copy_file(fixture("honest"), folder / "libsched-mine.so");
  const Diagnosis diagnosis = diagnose("sched-mine", {{folder.folder(), "--path"}});
  ASSERT_EQ(diagnosis.checks.size(), 1U);
  EXPECT_THAT(diagnosis.checks[0].details,
              ElementsAre(folder.folder().string() + " (--path): 1 plugin; did you mean libsched-mine.so?"));
  EXPECT_EQ(diagnosis.checks[0].next,
            "a plugin's file is named NAME.so, such as sched-mine.so, not libsched-mine.so: build it with "
            "triax_add_plugin(sched-mine ...)");
  EXPECT_EQ(diagnosis.file, fs::path());
}

} // namespace

} // namespace triax::doctor
