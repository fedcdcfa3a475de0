// SPDX-License-Identifier: Apache-2.0
// Logits of imported models are those of transformers.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "reference_model.hpp"
#include "train/generating.hpp"

namespace triax::hf {
namespace {

// Both compute in fp32; logits are of the order of 10.
constexpr double kTolerance = 1e-4;

const nlohmann::json& expected_logits() {
  static const nlohmann::json json = nlohmann::json::parse(std::ifstream(reference("logits.json")))["models"];
  return json;
}

/// Fills a parameter of one rank; rows after those of the whole parameter are padding, and stay zeros.
void fill(checkpoint::TensorReader& reader, const std::string& name, const TensorView& host) {
  const checkpoint::SavedTensor* const saved = reader.find(name, checkpoint::kMasterState);
  ASSERT_TRUE(saved) << name;
  ASSERT_EQ(saved->dtype, host.dtype());
  Shape origin = saved->shape;
  for (int dim = 0; dim < origin.rank(); ++dim) origin[dim] = 0;
  reader.read(*saved, origin, saved->shape, host.as<std::byte>());
}

class ImportedLogits : public ::testing::TestWithParam<const char*> {};

TEST_P(ImportedLogits, AreThoseOfTransformers) {
  const test::TempFolder folder;
  for (const char* file : {"text.bin", "text.idx"}) test::write_file(folder / file, "");
  const std::filesystem::path checkpoint = folder / "imported";
  import_model(reference(GetParam()), checkpoint, (folder / "text").string());
  const config::LoadResult loaded = config::load(checkpoint.string() + ".toml", {});
  ASSERT_TRUE(loaded.run) << loaded.refusals.front().text;
  const nlohmann::json& expected = expected_logits()[GetParam()];
  const auto samples = static_cast<std::int64_t>(expected["tokens"].size()),
             length = static_cast<std::int64_t>(expected["tokens"][0].size());
  std::vector<std::int32_t> tokens; // [length, samples]
  for (std::int64_t row = 0; row < length; ++row)
    for (std::int64_t sample = 0; sample < samples; ++sample)
      tokens.push_back(expected["tokens"][static_cast<std::size_t>(sample)][static_cast<std::size_t>(row)]);

  test::Logits found;
  test::run_ranks(train::layout_of(*loaded.run), [&](test::Rank& rank) {
    test::TinyGenerator of(*loaded.run, rank,
                           {.microbatches = static_cast<int>(samples), .sequence = length, .max_rows = length});
    checkpoint::TensorReader reader(checkpoint);
    of.state().load(
        rank.device(), rank.stream(),
        [&](const std::string& name, const ParamSpec&, const TensorView& host) { fill(reader, name, host); });
    of.generator().append({tokens.data(), DType::i32, {length, samples}});
    std::vector<test::Logits> by_sample;
    test::collect(of, length, by_sample);
    for (const test::Logits& one : by_sample) found.insert(found.end(), one.begin(), one.end());
  });
  ASSERT_EQ(found.size(), expected["logits"].size());
  double largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
    largest = std::max(largest, std::abs(found[i] - expected["logits"][i].get<double>()));
  EXPECT_LE(largest, kTolerance);
  RecordProperty("largest_difference", std::to_string(largest));
}

INSTANTIATE_TEST_SUITE_P(Of, ImportedLogits, ::testing::ValuesIn(kReferences), test_name);

} // namespace
} // namespace triax::hf
