// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/new_checkpoint.hpp"

#include <system_error>
#include <vector>

#include "checkpoint/folder.hpp"
#include "checksum/checksum.hpp"
#include "os/folder_access.hpp"
#include "triax/error.hpp"

namespace triax::checkpoint {

namespace {

namespace fs = std::filesystem;

constexpr const char* kNameWritable = "name a folder in one that this user may write to";
constexpr const char* kNameAnother = "free space there, or name another folder";

std::string missing_parent_hint(const fs::path& folder) {
  return text("create the folder {}, or name one in an existing folder", folder.parent_path());
}

} // namespace

void refuse_new_folder(const fs::path& folder, const std::string& argument) {
  std::error_code unknown;
  if (folder.empty()) throw Error(argument + " is empty", {}, "name the folder to write");
  if (fs::exists(folder.parent_path() / kManifestFile, unknown))
    throw Error("is in a checkpoint", folder.string(), "name a folder beside it");
  if (const std::string why = os::why_not_creatable(folder); !why.empty())
    throw Error("cannot be created: " + why, folder.string(), kNameWritable);
  const fs::file_type type = fs::symlink_status(folder, unknown).type();
  if (const std::string why = os::why_name_too_long(folder); !why.empty())
    throw Error("cannot be created: " + why, folder.string(), "choose a shorter name");
  if (type == fs::file_type::none) // its path is too long, or its folder may not be searched
    throw Error("cannot be created: " + unknown.message(), folder.string(), "name another folder");
  if (type != fs::file_type::not_found)
    throw Error("already exists", folder.string(), "remove it, or name another folder");
  if (folder.extension() == ".safetensors" || folder.extension() == ".toml")
    throw Error(text("{} must be a folder, but this is the name of a file", argument), folder.string(),
                "name a folder; triax checkpoint convert writes one file of weights");
  if (folder.has_parent_path() && !fs::exists(folder.parent_path(), unknown))
    throw Error("cannot be created: No such file or directory", folder.string(), missing_parent_hint(folder));
}

void refuse_checkpoint_output(const fs::path& output, const std::string& argument) {
  if (step_of(output.filename().string()))
    throw Error("is a name that a run would take for its own checkpoint and continue from", output.string(),
                "choose a name that is not step-N");
  refuse_new_folder(output, argument);
}

StagedFolder::StagedFolder(const fs::path& folder) : folder_(folder), hidden_(os::partial_name(folder)) {
  std::error_code failed;
  if (!fs::create_directory(hidden_, failed))
    throw Error("cannot be created: " + (failed ? failed.message() : "already exists"), folder.string(),
                failed == std::errc::no_such_file_or_directory ? missing_parent_hint(folder) : kNameWritable);
  lock_ = os::lock_partial(hidden_);
  os::remove_abandoned(folder_);
}

StagedFolder::~StagedFolder() {
  std::error_code ignored;
  if (!complete_) fs::remove_all(hidden_, ignored);
}

void StagedFolder::remove() noexcept {
  std::error_code ignored;
  fs::remove_all(complete_ ? folder_ : hidden_, ignored);
}

os::DurableFile StagedFolder::file(const std::string& name) const {
  return os::DurableFile(hidden_ / name, {folder_ / name, kNameAnother});
}

void StagedFolder::create_folder(const std::string& name) {
  std::error_code failed;
  if (!fs::create_directory(hidden_ / name, failed))
    throw Error("cannot be created: " + failed.message(), (folder_ / name).string(), kNameAnother);
  folders_.push_back(hidden_ / name);
}

void StagedFolder::complete() {
  for (const fs::path& folder : folders_) os::sync_folder(folder);
  os::sync_folder(hidden_);
  os::rename_to_new(hidden_, folder_, kNameAnother);
  complete_ = true;
}

SavedPart write_weights(const StagedFolder& folder, std::span<TensorEntry> entries,
                        const std::function<void(std::size_t, const ByteSink&)>& write) {
  TRIAX_REQUIRE(!entries.empty(), "a checkpoint without weights");
  const std::string name = file_name("weights", 0), header = make_header(entries);
  os::DurableFile file = folder.file(name);
  Checksum of_header;
  of_header.add(std::as_bytes(std::span(header)));
  file.write(std::as_bytes(std::span(header)));
  SavedPart out;
  out.files.push_back({name, header.size() + entries.back().begin + entries.back().bytes(), of_header.text()});
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const TensorEntry& entry = entries[i];
    Checksum checksum;
    write(i, [&](std::span<const std::byte> bytes) {
      checksum.add(bytes);
      file.write(bytes);
    });
    Shape origin = entry.shape;
    for (int dim = 0; dim < origin.rank(); ++dim) origin[dim] = 0;
    out.tensors.push_back({entry.name,
                           kMasterState,
                           entry.dtype,
                           entry.shape,
                           {{name, entry.name, origin, entry.shape, checksum.text()}}});
  }
  file.finish();
  return out;
}

void write_manifest(const StagedFolder& folder, const Manifest& manifest) {
  const std::string json = to_json(manifest);
  os::DurableFile file = folder.file(kManifestFile);
  file.write(std::as_bytes(std::span(json)));
  file.finish();
}

} // namespace triax::checkpoint
