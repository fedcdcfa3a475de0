// SPDX-License-Identifier: Apache-2.0
// Tensors in files: any box reads back from whatever boxes were written, and all damage is found and named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <numeric>

#include "checkpoint/tensor_reader.hpp"
#include "checkpoint/tensor_writer.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace triax::checkpoint {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Shape (*kGlobal)() = [] { return Shape{6, 4, 5}; };

/// The value of an element is its number in the global tensor.
std::vector<float> values_of(const Shape& begin, const Shape& size) {
  const Shape global = kGlobal();
  std::vector<float> out;
  for (std::int64_t i = 0; i < size[0]; ++i)
    for (std::int64_t j = 0; j < size[1]; ++j)
      for (std::int64_t k = 0; k < size[2]; ++k)
        out.push_back(static_cast<float>(((begin[0] + i) * global[1] + begin[1] + j) * global[2] + begin[2] + k));
  return out;
}

class TensorFiles : public ::testing::Test {
 protected:
  /// Each inner list: the boxes of one rank, as begin and size.
  using Boxes = std::vector<std::vector<std::pair<Shape, Shape>>>;
  void write(const Boxes& ranks) {
    PartMerger all;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      std::vector<std::vector<float>> data;
      for (const auto& [begin, size] : ranks[rank]) data.push_back(values_of(begin, size));
      TensorData tensor{"block 0/w", "m", DType::f32, kGlobal(), {}};
      for (std::size_t i = 0; i < data.size(); ++i)
        tensor.boxes.push_back({ranks[rank][i].first, ranks[rank][i].second, std::as_bytes(std::span(data[i])).data()});
      all.add(write_tensors(folder_.path(), "optimizer-" + std::to_string(rank) + ".safetensors", {&tensor, 1}));
    }
    Manifest manifest;
    manifest.content = all.take();
    test::write_file(folder_ / kManifestFile, to_json(manifest));
  }
  std::vector<float> read(const Shape& begin, const Shape& size) const {
    TensorReader reader(folder_.path());
    std::vector<float> out(static_cast<std::size_t>(size.elements()), -1);
    reader.read(*reader.find("block 0/w", "m"), begin, size, std::as_writable_bytes(std::span(out)).data());
    return out;
  }
  std::vector<Error> damage() const { return TensorReader(folder_.path()).verify(0, 1); }
  std::string only_damage() const {
    const std::vector<Error> found = damage();
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? "" : found.front().what();
  }
  void flip(const std::string& file, std::int64_t from_end) const {
    std::fstream of(folder_ / file, std::ios::in | std::ios::out | std::ios::binary);
    of.seekg(-from_end, std::ios::end);
    const int byte = of.get();
    of.seekp(-from_end, std::ios::end);
    of.put(static_cast<char>(byte ^ 1));
  }
  test::TempFolder folder_;
  /// Three ranks: a part that no row ends, the rest of its rows, and whole planes.
  const Boxes uneven_ = {{{{0, 0, 0}, {1, 4, 5}}, {{1, 0, 0}, {1, 2, 5}}, {{1, 2, 0}, {1, 1, 3}}},
                         {{{1, 2, 3}, {1, 1, 2}}, {{1, 3, 0}, {1, 1, 5}}},
                         {{{2, 0, 0}, {4, 4, 5}}}};
};

/// As a run does it that keeps its newest checkpoints only.
TEST_F(TensorFiles, ACheckpointThatIsRemovedMeanwhileIsNotCalledDamaged) {
  write({{{{0, 0, 0}, {6, 4, 5}}}});
  TensorReader reader(folder_.path());
  fs::remove(folder_ / kManifestFile);
  fs::remove(folder_ / "optimizer-0.safetensors");
  std::vector<float> out(120);
  const std::string expected = "was removed while it was read";
  EXPECT_THAT(test::error_of([&] {
                reader.read(*reader.find("block 0/w", "m"), {0, 0, 0}, {6, 4, 5},
                            std::as_writable_bytes(std::span(out)).data());
              }),
              HasSubstr(expected));
  const std::vector<Error> problems = reader.verify(0, 1);
  ASSERT_FALSE(problems.empty());
  EXPECT_THAT(problems.front().what(), HasSubstr(expected));
}

TEST_F(TensorFiles, AnyBoxReadsBack) {
  const Boxes columns = {{{{0, 0, 0}, {6, 4, 2}}}, {{{0, 0, 2}, {6, 4, 3}}}};
  const Boxes middle = {{{{0, 0, 0}, {6, 1, 5}}}, {{{0, 1, 0}, {6, 3, 5}}}};
  for (const Boxes& written : {uneven_, columns, middle}) {
    test::TempFolder& folder = folder_;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder.path())) fs::remove(entry.path());
    write(written);
    for (const auto& [begin, size] : std::vector<std::pair<Shape, Shape>>{{{0, 0, 0}, {6, 4, 5}},
                                                                          {{1, 1, 1}, {3, 2, 3}},
                                                                          {{0, 0, 4}, {6, 4, 1}},
                                                                          {{1, 2, 2}, {1, 1, 2}},
                                                                          {{5, 3, 4}, {1, 1, 1}}})
      EXPECT_EQ(read(begin, size), values_of(begin, size)) << to_text(begin) << to_text(size);
    EXPECT_THAT(damage(), IsEmpty());
  }
}

/// Of open files, in this process.
class OpenFileLimit {
 public:
  explicit OpenFileLimit(rlim_t limit) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit lower{limit, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &lower);
  }
  ~OpenFileLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  OpenFileLimit(const OpenFileLimit&) = delete;
  OpenFileLimit& operator=(const OpenFileLimit&) = delete;

 private:
  rlimit before_{};
};

TEST_F(TensorFiles, AReaderForAnotherThreadDoesNotReadTheManifestAgain) {
  write(uneven_);
  const TensorReader reader(folder_.path());
  test::write_file(folder_ / kManifestFile, "not a manifest");
  TensorReader other = reader.for_another_thread();
  EXPECT_TRUE(other.verify(0, 1).empty());
  EXPECT_EQ(&other.manifest(), &reader.manifest());
  EXPECT_THROW(TensorReader{folder_.path()}, Error);
}

TEST_F(TensorFiles, MoreFilesThanMayBeOpenAreRead) {
  Boxes elements; // each in a separate file
  for (std::int64_t i = 0; i < 6; ++i)
    for (std::int64_t j = 0; j < 4; ++j)
      for (std::int64_t k = 0; k < 5; ++k) elements.push_back({{{i, j, k}, {1, 1, 1}}});
  write(elements);
  const OpenFileLimit limit(64);
  EXPECT_EQ(read({0, 0, 0}, {6, 4, 5}), values_of({0, 0, 0}, {6, 4, 5}));
  EXPECT_THAT(damage(), IsEmpty());
}

TEST_F(TensorFiles, NamesAndKeysSayWhatAPieceIs) {
  write(uneven_);
  const TensorReader reader(folder_.path());
  const SavedTensor& tensor = *reader.find("block 0/w", "m");
  EXPECT_EQ(tensor.pieces[0].key, "block 0/w/m[0:1, 0:4, 0:5]");
  EXPECT_EQ(tensor.pieces.size(), 6u);
  EXPECT_EQ(reader.find("block 0/w", "v"), nullptr);
}

/// Its bytes have no checksum.
TEST_F(TensorFiles, ATensorThatTheManifestDoesNotNameIsFound) {
  write(uneven_);
  Manifest manifest = read_manifest(folder_ / kManifestFile);
  manifest.content.tensors.clear();
  test::write_file(folder_ / kManifestFile, to_json(manifest));
  const std::vector<Error> found = damage();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_THAT(found[1].what(), HasSubstr("optimizer-1.safetensors: tensor \"block 0/w/m["));
  EXPECT_THAT(found[1].what(), HasSubstr("]\" is not in manifest.json"));
}

TEST_F(TensorFiles, AChangedBitIsFoundAndNamed) {
  write(uneven_);
  flip("optimizer-1.safetensors", 3);
  EXPECT_THAT(only_damage(), HasSubstr("optimizer-1.safetensors: checksum mismatch in tensor \"block 0/w/m[1:2, 3:4, "
                                       "0:5]\"\n  the checkpoint is damaged: restore it from a backup, or use "
                                       "another"));
}

TEST_F(TensorFiles, AChangedHeaderIsFound) {
  write(uneven_);
  std::fstream(folder_ / "optimizer-2.safetensors", std::ios::in | std::ios::out | std::ios::binary).seekp(8).put('[');
  EXPECT_THAT(only_damage(), HasSubstr("optimizer-2.safetensors: the header does not begin with \"{\""));
  flip("optimizer-2.safetensors", 4 * 4 * 5 * 4 + 1); // the last byte of the header, which is padding or "}"
  EXPECT_EQ(damage().size(), 1u);
}

TEST_F(TensorFiles, AFileThatIsShortMissingOrAnotherIsFound) {
  write(uneven_);
  fs::resize_file(folder_ / "optimizer-2.safetensors", fs::file_size(folder_ / "optimizer-2.safetensors") - 1);
  EXPECT_THAT(only_damage(), HasSubstr("optimizer-2.safetensors: has "));
  fs::remove(folder_ / "optimizer-2.safetensors");
  EXPECT_THAT(only_damage(), HasSubstr("optimizer-2.safetensors: does not exist"));
  EXPECT_THAT(test::error_of([&] {
                read({0, 0, 0}, {6, 4, 5});
              }),
              HasSubstr("optimizer-2.safetensors: does not exist"));
  EXPECT_EQ(read({0, 0, 0}, {1, 4, 5}), values_of({0, 0, 0}, {1, 4, 5})); // needs other files only
  fs::copy_file(folder_ / "optimizer-0.safetensors", folder_ / "optimizer-2.safetensors");
  EXPECT_GE(damage().size(), 1u);
}

TEST_F(TensorFiles, PiecesThatOverlapAndLeaveAGapAreRefused) {
  write({{{{0, 0, 0}, {4, 4, 5}}}, {{{3, 0, 0}, {2, 4, 5}}}});
  EXPECT_THAT(test::error_of([&] {
                read({0, 0, 0}, {6, 4, 5});
              }),
              HasSubstr("manifest.json: the pieces of block 0/w (m) overlap: "));
}

TEST_F(TensorFiles, AFileIsNotReplaced) {
  write({{{{0, 0, 0}, {6, 4, 5}}}});
  const TensorData none{"block 0/w", "m", DType::f32, kGlobal(), {}};
  EXPECT_TRUE(write_tensors(folder_.path(), "none.safetensors", {&none, 1}).files.empty());
  EXPECT_FALSE(fs::exists(folder_ / "none.safetensors"));
  EXPECT_THAT(test::error_of([&] {
                write({{{{0, 0, 0}, {6, 4, 5}}}});
              }),
              HasSubstr("optimizer-0.safetensors: cannot be written: File exists"));
}

TEST_F(TensorFiles, AFolderThatDoesNotExistAndAStopAreReported) {
  const std::vector<float> data(120);
  const TensorData tensor{
      "w", "master", DType::f32, kGlobal(), {{{0, 0, 0}, {6, 4, 5}, std::as_bytes(std::span(data)).data()}}};
  EXPECT_THAT(test::error_of([&] {
                write_tensors(folder_ / "none", "x", {&tensor, 1});
              }),
              HasSubstr("none/x: cannot be written: No such file or directory"));
  const StopRequest stop = [] { return true; };
  EXPECT_THAT(test::error_of([&] {
                write_tensors(folder_.path(), "x", {&tensor, 1}, stop);
              }),
              HasSubstr("stopped before it was complete"));
}

} // namespace
} // namespace triax::checkpoint
