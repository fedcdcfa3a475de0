// SPDX-License-Identifier: Apache-2.0
// Reads boxes of global tensors from a checkpoint, whatever boxes it was written in.
//
// Threads: one per object. Ownership: owns open files and a buffer. Blocking: reads. Errors: Error with the file and
// the tensor.
#pragma once

#include <cstddef>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint/stop_request.hpp"
#include "os/input_file.hpp"
#include "triax/error.hpp"

namespace triax::checkpoint {

class TensorReader {
 public:
  /// Reads the manifest.
  explicit TensorReader(std::filesystem::path folder);
  /// One more reader of the same checkpoint, for another thread. The two share the manifest.
  TensorReader for_another_thread() const { return {folder_, contents_}; }

  const Manifest& manifest() const { return contents_->manifest; }
  const std::filesystem::path& folder() const { return folder_; }
  /// Null if the checkpoint does not have it.
  const SavedTensor* find(const std::string& parameter, const std::string& state) const;
  /// Fills `out` with the elements of a box, in row-major order. Reads only the pieces that have parts of it.
  void read(const SavedTensor& tensor, const Shape& begin, const Shape& size, std::byte* out);

  /// Verifies sizes and checksums of the files [first, first + step, ...): of all files, or of those with tensors of
  /// one state. Returns every mismatch; ends early once `stop` returns true.
  std::vector<Error> verify(std::size_t first, std::size_t step, const StopRequest& stop = {},
                            const std::string& state = {});

 private:
  struct PieceOfTensor {
    const SavedTensor* tensor;
    const Piece* piece;
  };
  struct Contents {
    std::span<const PieceOfTensor> pieces_of(const std::string& file) const;

    Manifest manifest;
    std::map<std::pair<std::string, std::string>, const SavedTensor*> tensors; // by parameter and state
    std::map<std::string, std::vector<PieceOfTensor>> pieces;                  // by file
  };
  struct OpenFile {
    std::optional<os::InputFile> file; // empty: closed
    std::uint64_t data = 0;            // offset
    std::map<std::string, TensorEntry> entries;
  };

  TensorReader(std::filesystem::path folder, std::shared_ptr<const Contents> contents);
  static std::shared_ptr<const Contents> read_contents(const std::filesystem::path& folder);
  std::vector<const SavedFile*> files_with(const std::string& state) const;
  /// Valid until the next call.
  OpenFile& open(const std::string& name);
  void require_folder() const;
  /// For a tensor of this size.
  void use_buffer(std::uint64_t bytes);
  const TensorEntry& entry_of(OpenFile& file, const SavedTensor& tensor, const Piece& piece) const;
  void copy(const SavedTensor& tensor, const Piece& piece, const Shape& begin, const Shape& size, std::byte* out);
  void verify_file(const SavedFile& saved, std::vector<Error>& problems, const StopRequest& stop);
  void check_named(const OpenFile& file, const SavedFile& saved) const;
  void verify_piece(OpenFile& file, const SavedTensor& tensor, const Piece& piece, const StopRequest& stop);

  const std::filesystem::path folder_;
  const std::shared_ptr<const Contents> contents_;
  const std::string damaged_;             // the next step if a file is damaged
  std::map<std::string, OpenFile> files_; // whose headers have been read
  std::deque<OpenFile*> open_;
  std::vector<std::byte> buffer_;
};

} // namespace triax::checkpoint
