// SPDX-License-Identifier: Apache-2.0
// triax plan --predict, compared with published step times. Constants are fitted to the calibration points only
// (scripts/fit-cluster); the errors of the held-out points are those of docs/planning.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/program.hpp"
#include "support/temp_folder.hpp"
#include "triax/text.hpp"

namespace triax::test {
namespace {

const std::filesystem::path kData = std::filesystem::path(TRIAX_SOURCE_DIR) / "tests/cost/data",
                            kSelene = std::filesystem::path(TRIAX_SOURCE_DIR) / "clusters/a100-dgx.toml";

/// The second column by the first, without comments and the heading.
std::map<std::string, std::string> columns(std::istream& in) {
  std::map<std::string, std::string> out;
  bool heading = true;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.starts_with('#') || std::exchange(heading, false)) continue;
    const std::size_t comma = line.find(',');
    out[line.substr(0, comma)] = line.substr(comma + 1, line.find(',', comma + 1) - comma - 1);
  }
  return out;
}

std::map<std::string, std::string> columns_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  EXPECT_TRUE(in) << file;
  return columns(in);
}

struct SetError {
  double sum = 0, largest = 0;
  int points = 0;
  double mean() const { return sum / points; }
};

struct Point {
  std::string set;
  double predicted = 0, published = 0;
  double error() const { return std::abs(predicted / published - 1); }
};

/// The points of a list that have a prediction.
std::vector<Point> points_of(const char* list, const std::filesystem::path& cluster = kSelene) {
  const Outcome outcome =
      run(".", text("plan --cluster {} --predict {}", cluster.string(), (kData / list).string()), "2>/dev/null");
  EXPECT_EQ(outcome.status, 0);
  std::istringstream printed(outcome.text);
  const auto predicted = columns(printed), published = columns_of(kData / "published.csv"),
             sets = columns_of(kData / list);
  EXPECT_EQ(predicted.size(), sets.size());
  std::vector<Point> out;
  for (const auto& [id, prediction] : predicted)
    if (!prediction.empty()) out.push_back({sets.at(id), std::stod(prediction), std::stod(published.at(id))});
  return out;
}

/// Mean and largest relative error by set, printed.
std::map<std::string, SetError> errors_of(const char* list) {
  std::map<std::string, SetError> out;
  for (const Point& point : points_of(list)) {
    for (const std::string& set : {point.set, std::string("all")}) {
      SetError& of = out[set];
      of.sum += point.error();
      of.largest = std::max(of.largest, point.error());
      ++of.points;
    }
  }
  for (const auto& [set, of] : out)
    std::printf("%s %s: %d points, mean error %.1f %%, largest %.1f %%\n", list, set.c_str(), of.points,
                100 * of.mean(), 100 * of.largest);
  return out;
}

TEST(Predictions, ReproduceTheCalibrationPoints) {
  const auto errors = errors_of("calibration.csv");
  EXPECT_EQ(errors.at("all").points, 28);
  EXPECT_LT(errors.at("all").mean(), 0.021);
  EXPECT_LT(errors.at("all").largest, 0.11);
}

TEST(Predictions, HoldForPointsThatNothingIsFittedTo) {
  const auto errors = errors_of("held_out.csv");
  EXPECT_EQ(errors.at("table1").points, 5);
  EXPECT_LT(errors.at("table1").mean(), 0.02);
  EXPECT_EQ(errors.at("table2").points, 3);
  EXPECT_LT(errors.at("table2").mean(), 0.031);
  EXPECT_EQ(errors.at("korthikanti").points, 8);
  EXPECT_LT(errors.at("korthikanti").mean(), 0.04);
  EXPECT_EQ(errors.at("zerobubble").points, 8); // another cluster, and another version of the code
  EXPECT_LT(errors.at("zerobubble").mean(), 0.09);
  EXPECT_LT(errors.at("all").mean(), 0.052);
}

TEST(Predictions, AreInTheOrderOfWhatWasMeasured) {
  std::vector<Point> points = points_of("calibration.csv");
  for (const Point& point : points_of("held_out.csv")) points.push_back(point);
  int pairs = 0, wrong = 0;
  for (std::size_t i = 0; i < points.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const Point &a = points[i], &b = points[j];
      if (a.set != b.set || std::abs(a.published / b.published - 1) <= 0.02) continue;
      ++pairs;
      wrong += (a.published < b.published) != (a.predicted < b.predicted);
    }
  std::printf("%d pairs that differ by more than 2 %%, %d in the wrong order\n", pairs, wrong);
  EXPECT_GT(pairs, 150);
  EXPECT_LE(wrong, 3);
}

TEST(Predictions, NeverRiseIfAPartOfTheClusterIsSlower) {
  std::ostringstream read;
  read << std::ifstream(kSelene).rdbuf();
  const std::vector<Point> before = points_of("calibration.csv");
  const TempFolder folder;
  for (const auto& [from, to] : {std::pair("value = 312e12", "value = 290e12"),
                                 {"value = 2039e9", "value = 1900e9"},
                                 {"value = 235e9", "value = 200e9"},
                                 {"e+10,", "e+9,"}}) {
    std::string toml = read.str();
    const std::size_t at = toml.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    std::ofstream(folder / "slower.toml") << toml.replace(at, std::string_view(from).size(), to);
    const std::vector<Point> after = points_of("calibration.csv", folder / "slower.toml");
    ASSERT_EQ(after.size(), before.size());
    for (std::size_t i = 0; i < after.size(); ++i) EXPECT_LE(after[i].predicted, before[i].predicted) << to << ' ' << i;
  }
}

} // namespace
} // namespace triax::test
