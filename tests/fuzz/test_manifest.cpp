// SPDX-License-Identifier: Apache-2.0
// Manifests of checkpoints with random changes are accepted, or refused with a message; so is what they lead to:
// reading and comparing the files. Useful mainly under sanitizers.
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

#include "changed_bytes.hpp"
#include "checkpoint/tensor_reader.hpp"
#include "checkpoint/tensor_writer.hpp"
#include "support/temp_folder.hpp"
#include "triax/error.hpp"

namespace triax::checkpoint {
namespace {

/// One tensor in two pieces of one file. Returns the manifest's text.
std::string write_good_files(const std::filesystem::path& folder) {
  std::vector<float> values(12);
  std::iota(values.begin(), values.end(), 0.0F);
  const auto* data = reinterpret_cast<const std::byte*>(values.data());
  const TensorData tensor{
      "block 0/w", "master", DType::f32, {4, 3}, {{{0, 0}, {1, 3}, data}, {{1, 0}, {3, 3}, data + 12}}};
  Manifest manifest;
  manifest.training.step = 7;
  manifest.created = "2026-11-24T18:00:00Z";
  manifest.layout = {{"data", 2}};
  manifest.config = {{"train.steps", "50"}};
  manifest.mean_of = {"a", "b"};
  manifest.content = write_tensors(folder, "weights-00000.safetensors", {&tensor, 1});
  return to_json(manifest);
}

/// Of a tensor that the manifest describes, if it is not larger than the file can be.
void read_whole(TensorReader& reader, const SavedTensor& tensor) {
  constexpr std::int64_t kMaxElements = 1000;
  if (tensor.shape.elements() > kMaxElements) return;
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.shape.elements()) * bytes_of(tensor.dtype));
  Shape origin = tensor.shape;
  for (int dim = 0; dim < origin.rank(); ++dim) origin[dim] = 0;
  try {
    reader.read(tensor, origin, tensor.shape, bytes.data());
  } catch (const Error& error) {
    EXPECT_FALSE(error.message().empty());
  }
}

/// True if the checkpoint was accepted, and the checksums of its files match.
bool manifest_accepted(const std::filesystem::path& folder, const std::string& json) {
  std::filesystem::remove(folder / kManifestFile); // file systems write a truncated file to the disk at once
  test::write_file(folder / kManifestFile, json);
  try {
    TensorReader reader(folder);
    for (const SavedTensor& tensor : reader.manifest().content.tensors) read_whole(reader, tensor);
    return reader.verify(0, 1).empty();
  } catch (const Error& error) {
    EXPECT_FALSE(error.message().empty());
    return false;
  }
}

TEST(Fuzz, ReadsOrRefusesChangedManifests) {
  const test::TempFolder folder;
  const std::string good = write_good_files(folder.path());
  ASSERT_TRUE(manifest_accepted(folder.path(), good));
  std::mt19937_64 random(41);
  int accepted = 0;
  constexpr int kRounds = 2'000;
  for (int round = 0; round < kRounds; ++round) {
    std::string changed = good;
    if (round % 2) test::change_some(changed, random);
    if (round % 2 == 0) test::change_json(changed, random);
    accepted += manifest_accepted(folder.path(), changed);
    if (HasFailure()) FAIL() << "round " << round << ": " << changed;
  }
  EXPECT_GT(accepted, 0); // some changes are in what nothing depends on
  EXPECT_LT(accepted, kRounds / 2);
}

TEST(Fuzz, RefusesNoiseAsAManifest) {
  const test::TempFolder folder;
  std::mt19937_64 random(42);
  for (int round = 0; round < 500; ++round) {
    std::string noise(random() % 200, '\0');
    for (char& byte : noise) byte = static_cast<char>(random());
    EXPECT_FALSE(manifest_accepted(folder.path(), (round % 2 ? "{" : "") + noise)) << "round " << round;
  }
  EXPECT_FALSE(manifest_accepted(folder.path(), std::string(1'000'000, '[')));
}

} // namespace
} // namespace triax::checkpoint
