// SPDX-License-Identifier: Apache-2.0
// manifest.json, which says what a checkpoint holds: the state of training, and where the parts of each global tensor
// are. docs/checkpoints.md describes the file.
//
// Threads: pure functions. Ownership: values. Errors: Error with the file and the key for content that is not valid.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "triax/tensor.hpp"

namespace triax::checkpoint {

inline constexpr int kManifestVersion = 1;
inline constexpr const char *kManifestFile = "manifest.json", *kMasterState = "master";

/// A box of a global tensor, which is a tensor of a safetensors file.
struct Piece {
  std::string file, key;
  Shape begin, size;
  std::string checksum; // of its bytes (checksum.hpp)
};

struct SavedTensor {
  std::string parameter; // "block 3/attention.qkv.weight"
  std::string state;     // "master", or the name that the optimizer gives it: "m"
  DType dtype = DType::f32;
  Shape shape; // of the whole tensor
  std::vector<Piece> pieces;
};

/// "block 3/attention.qkv.weight (m)"
std::string name_of(const SavedTensor& tensor);

struct SavedFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::string header_checksum; // of all bytes before the data
};

/// The files that one rank has written.
struct SavedPart {
  std::vector<SavedFile> files;
  std::vector<SavedTensor> tensors;
};

/// The state of training at the end of a step, apart from tensors. All that is random is a function of the seed and of
/// the numbers of samples.
struct TrainingState {
  std::int64_t step = 0;            // steps done
  std::int64_t samples = 0;         // consumed, including those that a rewind dropped
  std::int64_t optimizer_steps = 0; // without skipped steps
  double loss_scale = 1;
  std::int32_t good_steps = 0, hysteresis = 1;     // counters of the loss scale, see StepScalars
  std::map<std::string, std::string> plugins = {}; // "optimizer": what SavedState::save() returned
  bool operator==(const TrainingState&) const = default;
};

/// The tokenizer of token files, as PREFIX.json describes it.
struct SavedTokenizer {
  std::string kind; // "byte", "bpe"
  std::int64_t vocab = 0;
  std::string digest;
  bool operator==(const SavedTokenizer&) const = default;
};

/// The content of token files.
struct CorpusContent {
  std::int64_t tokens = 0;
  std::string checksum;                         // of the bytes of PREFIX.bin (checksum.hpp)
  std::optional<SavedTokenizer> tokenizer = {}; // empty: not known, or not recorded
  bool operator==(const CorpusContent&) const = default;
};

/// The corpora that a run has read, in their order in the configuration.
struct DataContent {
  std::vector<CorpusContent> training, validation; // empty: not read, or not recorded
};

struct Manifest {
  TrainingState training;
  DataContent data;
  std::int64_t tokens = 0;                    // of `samples`
  std::string created;                        // "2026-11-24T18:00:00Z"
  std::string engine;                         // version of Triax that wrote it
  std::map<std::string, std::string> plugins; // "model": "model-gpt 0.1.0"
  std::map<std::string, int> layout;          // size of each axis
  std::map<std::string, std::string> config;  // the run's keys and values, as in resolved.toml
  SavedPart content;
  std::vector<std::string> mean_of; // folders of the checkpoints whose weights were averaged; else empty
};

/// The current time, as in Manifest::created.
std::string creation_time();

/// The size of all files.
std::uint64_t total_bytes(const SavedPart& part);

std::string to_json(const SavedPart& part);
/// `from`: what the text is from, for errors.
SavedPart part_from_json(std::string_view json, const std::string& from);

std::string to_json(const Manifest& manifest);
/// Throws Error if the file's version is newer than kManifestVersion, or if the pieces of a tensor do not make up the
/// whole.
Manifest read_manifest(const std::filesystem::path& file);

/// Puts the parts of all ranks together.
class PartMerger {
 public:
  /// Throws Error if two ranks describe a tensor differently.
  void add(SavedPart part);
  SavedPart take() { return std::move(all_); }

 private:
  SavedPart all_;
  std::map<std::pair<std::string, std::string>, std::size_t> index_; // in all_.tensors, by parameter and state
};

/// Throws Error with `from` unless the pieces of each tensor have as many elements as it, in files that are listed, and
/// no tensor occurs twice.
void check_whole(const SavedPart& all, const std::string& from);

} // namespace triax::checkpoint
