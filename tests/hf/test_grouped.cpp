// SPDX-License-Identifier: Apache-2.0
// A model of the Llama family in a separate plugin: import and export need nothing but its tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "reference_model.hpp"
#include "support/error_of.hpp"

namespace triax::hf {
namespace {

using test::error_of;
using ::testing::HasSubstr;

constexpr std::int64_t kHidden = 8, kHeads = 4, kKvHeads = 2, kDim = 2, kInner = 5, kVocab = 6;

/// Row r of tensor number n has the values 100 n + r.
std::vector<float> numbered(int tensor, std::int64_t rows, std::int64_t columns) {
  std::vector<float> out;
  for (std::int64_t row = 0; row < rows; ++row)
    out.insert(out.end(), static_cast<std::size_t>(columns), static_cast<float>(100 * tensor + row));
  return out;
}

class GroupedModel : public ::testing::Test {
 protected:
  /// A folder with the tensors of one block. A tied model has no head, or a copy of the table.
  void write_model(const char* name, bool tied, bool has_head) {
    std::filesystem::create_directory(folder_ / name);
    test::write_file(folder_ / name / "config.json",
                     text(R"({"architectures": ["GroupedForCausalLM"], "vocab_size": {}, "hidden_size": {},
                       "num_hidden_layers": 1, "num_attention_heads": {}, "num_key_value_heads": {},
                       "intermediate_size": {}, "tie_word_embeddings": {}})",
                          kVocab, kHidden, kHeads, kKvHeads, kInner, tied));
    std::vector<checkpoint::TensorEntry> entries;
    std::string data;
    const auto add = [&](const std::string& tensor, const Shape& shape, int number) {
      entries.push_back({tensor, DType::f32, shape, 0});
      const std::vector<float> values = numbered(number, shape[0], shape.elements() / shape[0]);
      data.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    };
    const std::string block = "model.layers.0.";
    add("model.embed_tokens.weight", {kVocab, kHidden}, 1);
    add(block + "self_attn.q_proj.weight", {kHeads * kDim, kHidden}, 2);
    add(block + "self_attn.k_proj.weight", {kKvHeads * kDim, kHidden}, 3);
    add(block + "self_attn.v_proj.weight", {kKvHeads * kDim, kHidden}, 4);
    add(block + "mlp.gate_proj.weight", {kInner, kHidden}, 5);
    add(block + "mlp.up_proj.weight", {kInner, kHidden}, 6);
    add(block + "mlp.down_proj.weight", {kHidden, kInner}, 7);
    add("model.norm.weight", {kHidden}, 8);
    if (has_head) add("lm_head.weight", {kVocab, kHidden}, tied ? 1 : 9);
    const std::string header = checkpoint::make_header(entries);
    test::write_file(folder_ / name / kSingleFile, header + data);
  }

  void import_from(const char* name, const char* output) {
    ModelImport from({.folder = folder_ / name,
                      .output = folder_ / output,
                      .run = folder_ / (std::string(output) + ".toml"),
                      .paths = {TEST_PLUGINS}});
    if (!from.refusals().empty()) throw to_error(from.refusals());
    from.write();
  }
  /// The first value of each row of a parameter.
  std::vector<float> rows_of(const char* checkpoint, const std::string& parameter, std::size_t columns) {
    const std::vector<std::byte> bytes = weights_in(folder_ / checkpoint).at(parameter);
    std::vector<float> values(bytes.size() / sizeof(float)), out;
    std::memcpy(values.data(), bytes.data(), bytes.size());
    for (std::size_t i = 0; i < values.size(); i += columns) out.push_back(values[i]);
    return out;
  }

  const test::TempFolder folder_;
};

TEST_F(GroupedModel, RowsAreThoseOfTheTables) {
  write_model("model", false, true);
  import_from("model", "imported");
  EXPECT_EQ(rows_of("imported", "block 0/qkv.weight", kHidden),
            (std::vector<float>{200, 201, 202, 203, 300, 301, 400, 401, // two query heads, their key, their value
                                204, 205, 206, 207, 302, 303, 402, 403}));
  EXPECT_EQ(rows_of("imported", "block 0/up.weight", kHidden),
            (std::vector<float>{500, 501, 502, 503, 504, 600, 601, 602, 603, 604}));
  EXPECT_EQ(rows_of("imported", "head/tokens.weight", kHidden), (std::vector<float>{900, 901, 902, 903, 904, 905}));
}

TEST_F(GroupedModel, ExportKeepsAllBits) {
  for (const bool tied : {false, true}) {
    const std::string name = tied ? "tied" : "untied";
    write_model(name.c_str(), tied, !tied);
    import_from(name.c_str(), (name + "-imported").c_str());
    export_model(folder_ / (name + "-imported"),
                 {.folder = folder_ / (name + "-exported"), .shard_bytes = 300, .paths = {TEST_PLUGINS}});
    EXPECT_EQ(tensors_in(folder_ / (name + "-exported")), tensors_in(folder_ / name));
  }
}

TEST_F(GroupedModel, ATiedModelMayHaveACopyOfTheTable) {
  write_model("copy", true, true);
  import_from("copy", "imported");
  EXPECT_FALSE(weights_in(folder_ / "imported").contains("head/tokens.weight"));
}

TEST_F(GroupedModel, AnUntiedModelNeedsItsHead) {
  write_model("headless", false, false);
  EXPECT_THAT(error_of([&] { import_from("headless", "imported"); }),
              HasSubstr("tensor \"lm_head.weight\" of shape [6, 8] is missing"));
}

} // namespace
} // namespace triax::hf
