// SPDX-License-Identifier: Apache-2.0
// Cluster files: the shipped ones, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "cost/cluster_file.hpp"
#include "cost/cluster_text.hpp"

namespace triax::cost {
namespace {

using testing::HasSubstr;

const std::filesystem::path kClusters = std::filesystem::path(TRIAX_SOURCE_DIR) / "clusters";

std::string selene_text() {
  std::ostringstream out;
  out << std::ifstream(kClusters / "a100-dgx.toml").rdbuf();
  return out.str();
}

/// The shipped file with one text replaced.
ClusterFile changed(const std::string& from, const std::string& to) {
  std::string toml = selene_text();
  const std::size_t at = toml.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return parse_cluster(toml.replace(at, from.size(), to), "c.toml");
}

std::string refusal(const ClusterFile& file) {
  EXPECT_EQ(file.refusals.size(), 1u);
  EXPECT_FALSE(file.cluster);
  return file.refusals.empty() ? "" : file.refusals.front().text;
}

TEST(ClusterFile, ShippedOnesAreRead) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kClusters)) {
    const ClusterFile file = read_cluster(entry.path());
    EXPECT_TRUE(file.cluster) << entry.path() << (file.refusals.empty() ? "" : file.refusals.front().text);
    ++files;
  }
  EXPECT_EQ(files, 3);
}

TEST(ClusterFile, ConstantsHaveTheirOrigin) {
  const Cluster cluster = *parse_cluster(selene_text(), "c.toml").cluster;
  EXPECT_EQ(cluster.device.peak_16bit.value, 312e12);
  EXPECT_EQ(cluster.device.peak_16bit.origin, Origin::published);
  EXPECT_EQ(cluster.device.gemm_efficiency.origin, Origin::fitted);
  EXPECT_EQ(cluster.device.tiles.size(), 4u);
  EXPECT_EQ(cluster.node.devices, 8);
}

TEST(ClusterFile, WrittenOnesAreReadBack) {
  for (const auto& entry : std::filesystem::directory_iterator(kClusters)) {
    Cluster cluster = *read_cluster(entry.path()).cluster;
    cluster.name = "a \"quoted\" name";
    cluster.profile = {"processor", 2, "bf16", {"kernels-cpu", "abc"}, {"comm-local", "def"}};
    const ClusterFile file = parse_cluster(to_toml(cluster), "c.toml");
    ASSERT_TRUE(file.cluster) << file.refusals.front().text;
    Cluster read = *file.cluster;
    EXPECT_EQ(read.name, cluster.name);
    EXPECT_EQ(read.node.devices, cluster.node.devices);
    EXPECT_EQ(read.node.link, "NVLink");
    EXPECT_EQ(read.profile->cores, 2);
    EXPECT_EQ(read.profile->precision, "bf16");
    EXPECT_EQ(read.profile->comm.build, "def");
    const std::vector<NamedConstant> before = named_constants(cluster), after = named_constants(read);
    for (std::size_t at = 0; at < before.size(); ++at) {
      EXPECT_NEAR(after[at].constant->value, before[at].constant->value, 1e-5 * before[at].constant->value);
      EXPECT_EQ(after[at].constant->origin, before[at].constant->origin) << after[at].name;
      EXPECT_EQ(after[at].constant->width, before[at].constant->width) << after[at].name;
    }
    ASSERT_EQ(read.device.tiles.size(), cluster.device.tiles.size());
  }
}

TEST(ClusterFile, AProfileIsComplete) {
  const std::string cut = "[profile]\nprocessor = \"one\"\n";
  const ClusterFile file = parse_cluster(selene_text() + cut, "c.toml");
  ASSERT_FALSE(file.cluster);
  EXPECT_EQ(file.refusals.size(), 6u);
  EXPECT_THAT(file.refusals.front().text, HasSubstr("profile.cores is missing"));
}

TEST(ClusterFile, LinksHaveNames) {
  EXPECT_EQ(parse_cluster(selene_text(), "c.toml").cluster->node.link, "NVLink");
  const Cluster unnamed = *changed("link = \"NVLink\"\nnetwork = \"InfiniBand\"\n", "").cluster;
  EXPECT_EQ(unnamed.node.link, "inside a node");
  EXPECT_EQ(unnamed.node.network, "between nodes");
  EXPECT_THAT(refusal(changed("link = \"NVLink\"", "link = 3")), HasSubstr("node.link must be a string"));
}

TEST(ClusterFile, NamesLineAndKeyOfWhatIsWrong) {
  EXPECT_THAT(refusal(changed("peak_16bit = { value = 312e12", "peak_16bit = { value = -1")),
              HasSubstr("device.peak_16bit.value must be in [1, 1e+30], got -1"));
  EXPECT_THAT(refusal(changed("peak_16bit = { value = 312e12", "peak_16bit = { value = \"fast\"")),
              HasSubstr("c.toml:11:"));
  EXPECT_THAT(refusal(changed("devices = 8", "devices = 0")), HasSubstr("node.devices must be in [1, 1024], got 0"));
  EXPECT_THAT(refusal(changed("256x128", "large")), HasSubstr("\"large\" is not a tile"));
  EXPECT_THAT(refusal(changed("value = 312e12, origin = \"published\"", "value = 312e12, origin = \"guessed\"")),
              HasSubstr("device.peak_16bit.origin must be measured, published, fitted or prior, got \"guessed\""));
  EXPECT_THAT(refusal(changed("launch_s = {", "launch_s = 3 #")), HasSubstr("has no origin"));
  EXPECT_THAT(refusal(changed("[step]", "[step]\nspeed = 3")), HasSubstr("unknown key step.speed"));
  EXPECT_THAT(refusal(changed("[node]", "[node")), HasSubstr("c.toml:"));
  const ClusterFile absent = read_cluster("no-such.toml");
  EXPECT_EQ(absent.refusals.at(0).refusal.code, ErrorCode::kNotFound);
  EXPECT_EQ(refusal(absent), "no-such.toml: does not exist\n  correct the path; examples are in clusters/");
}

TEST(ClusterFile, RefusesAnotherFileWithOneError) {
  const ClusterFile file = parse_cluster("[model]\nplugin = \"model-gpt\"\nlayers = 2\n", "run.toml");
  ASSERT_EQ(file.refusals.size(), 1u);
  EXPECT_EQ(file.refusals[0].text,
            "run.toml: not a cluster file: it has no [cluster] table\n"
            "  use one of clusters/, such as clusters/a100-dgx.toml");
}

TEST(ClusterFile, AHintIsNoConstantThatCanBePasted) {
  EXPECT_THAT(
      refusal(changed("peak_16bit = { value = 312e12,", "peak_16bit = {")),
      HasSubstr("device.peak_16bit.value is missing\n  write peak_16bit = { value = ..., origin = \"...\", width = "
                "... }; units are bytes"));
}

TEST(ClusterFile, ReportsAllErrorsAndWhatWasMeant) {
  const ClusterFile file = changed("peak_16bit", "peak_16bits");
  ASSERT_EQ(file.refusals.size(), 2u);
  EXPECT_THAT(file.refusals[0].text, HasSubstr("device.peak_16bit is missing"));
  EXPECT_THAT(file.refusals[1].text, HasSubstr("unknown key device.peak_16bits\n  did you mean device.peak_16bit?"));
}

} // namespace
} // namespace triax::cost
