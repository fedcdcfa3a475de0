// SPDX-License-Identifier: Apache-2.0
// A checkpoint with weights only that a subcommand writes: a folder with a hidden name beside its own until it is
// complete.
//
// Threads: one per object. Blocking: writes, and waits for the disk. Errors: Error with the file as the user named it;
// then there is no folder of that name.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "checkpoint/safetensors.hpp"
#include "os/descriptor.hpp"
#include "os/durable_file.hpp"

namespace triax::checkpoint {

/// Refuses a folder to write that exists, that cannot be created, that is in a checkpoint, or whose name is that of a
/// file. `argument`: how the command line names it.
void refuse_new_folder(const std::filesystem::path& folder, const std::string& argument);
/// Also refuses a folder that a run would take for its own checkpoint.
void refuse_checkpoint_output(const std::filesystem::path& folder, const std::string& argument);

/// A folder with a hidden name beside its own, which is removed unless it was completed.
class StagedFolder {
 public:
  explicit StagedFolder(const std::filesystem::path& folder);
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  /// `name`: may be in a folder of create_folder().
  os::DurableFile file(const std::string& name) const;
  void create_folder(const std::string& name);
  /// Gives the folder its name.
  void complete();
  /// Removes the folder, also if it is complete: if what belongs to it could not be written.
  void remove() noexcept;

 private:
  const std::filesystem::path folder_, hidden_;
  os::Descriptor lock_{-1};
  std::vector<std::filesystem::path> folders_; // in it
  bool complete_ = false;
};

/// Takes consecutive bytes of a tensor.
using ByteSink = std::function<void(std::span<const std::byte>)>;

/// Writes whole tensors of the state "master" to one file of the folder. `entries`: named like the parameters.
/// `write(i, sink)` passes all bytes of entry i to `sink`, in any number of calls.
SavedPart write_weights(const StagedFolder& folder, std::span<TensorEntry> entries,
                        const std::function<void(std::size_t, const ByteSink&)>& write);

/// Writes the manifest.
void write_manifest(const StagedFolder& folder, const Manifest& manifest);

} // namespace triax::checkpoint
