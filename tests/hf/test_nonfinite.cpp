// SPDX-License-Identifier: Apache-2.0
// Weights that are NaN or infinite: an import keeps them, and says which tensor has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <utility>

#include "reference_model.hpp"

namespace triax::hf {
namespace {

namespace fs = std::filesystem;

using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr std::uint32_t kNan = 0x7fc00000, kMinusInfinity = 0xff800000, kMaxFinite = 0x7f7fffff;

/// Writes the bits of elements of a tensor in the only file of a folder.
template <class Bits>
void put(const fs::path& folder, const std::string& tensor,
         std::initializer_list<std::pair<std::size_t, Bits>> elements) {
  const fs::path file = folder / kSingleFile;
  const checkpoint::SafetensorsHeader header = checkpoint::read_header(os::InputFile(file), file);
  const auto entry = std::ranges::find(header.entries, tensor, &checkpoint::TensorEntry::name);
  ASSERT_NE(entry, header.entries.end());
  std::string bytes = test::read_file(file);
  for (const auto& [element, bits] : elements)
    std::memcpy(bytes.data() + header.bytes + entry->begin + element * sizeof bits, &bits, sizeof bits);
  fs::remove(file); // the copy of a reference may be read-only
  test::write_file(file, bytes);
}

class Nonfinite : public ::testing::Test {
 protected:
  fs::path copy_of(const std::string& model) {
    fs::copy(reference(model), folder_ / model);
    return folder_ / model;
  }
  /// The warning of an import; empty without one.
  std::string warning_of(const fs::path& model) {
    const ImportedModel made = import_model(model, folder_ / "imported");
    return made.nonfinite ? made.nonfinite->what() : "";
  }
  const test::TempFolder folder_;
};

TEST_F(Nonfinite, IsNotInModelsWithFiniteWeights) {
  const fs::path model = copy_of("gpt2-inner");
  put<std::uint32_t>(model, "transformer.wpe.weight", {{3, kMaxFinite}, {4, 1}}); // 1: subnormal
  EXPECT_EQ(warning_of(model), "");
}

TEST_F(Nonfinite, NamesTheFirstTensorAndKeepsAllBits) {
  const fs::path model = copy_of("gpt2-inner");
  put<std::uint32_t>(model, "transformer.h.0.attn.c_attn.weight",
                     {{0, kNan}, {299, 0x7f800001}}); // 10 x 30, transposed
  put<std::uint32_t>(model, "transformer.ln_f.bias", {{3, kMinusInfinity}});
  EXPECT_EQ(warning_of(model),
            (model / kSingleFile).string() +
                ": tensor \"transformer.h.0.attn.c_attn.weight\" has 2 values that are NaN or infinite (and 1 more)\n"
                "  the file was damaged, or the model diverged in training: download the folder again, or use another "
                "model");
  export_model(folder_ / "imported", {.folder = folder_ / "exported"});
  EXPECT_EQ(tensors_in(folder_ / "exported"), tensors_in(model));
}

/// One of the three tensors of a parameter.
TEST_F(Nonfinite, IsCountedForEachTensorOfARow) {
  const fs::path model = copy_of("llama-scaled");
  put<std::uint32_t>(model, "model.layers.1.self_attn.k_proj.weight", {{7, kMinusInfinity}});
  EXPECT_THAT(warning_of(model),
              HasSubstr("tensor \"model.layers.1.self_attn.k_proj.weight\" has 1 value that is NaN or "
                        "infinite\n"));
}

TEST_F(Nonfinite, IsFoundInSixteenBits) {
  import_model(reference("gpt2-inner"), folder_ / "plain");
  for (const auto& [type, bits] : {std::pair(DType::bf16, 0x7fc0), std::pair(DType::f16, 0x7e00)}) {
    const std::string name(name_of(type));
    export_model(folder_ / "plain", {.folder = folder_ / name, .dtype = type});
    put<std::uint16_t>(folder_ / name, "transformer.h.0.mlp.c_proj.bias", {{9, static_cast<std::uint16_t>(bits)}});
    const ImportedModel made = import_model(folder_ / name, folder_ / (name + "-imported"));
    ASSERT_TRUE(made.nonfinite) << name;
    EXPECT_THAT(made.nonfinite->message(), EndsWith("mlp.c_proj.bias\" has 1 value that is NaN or infinite")) << name;
  }
}

} // namespace
} // namespace triax::hf
