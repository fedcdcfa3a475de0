// SPDX-License-Identifier: Apache-2.0
#include "hf/model_tensors.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/printable.hpp"
#include "hf/hints.hpp"
#include "hf/json_file.hpp"
#include "hf/lfs_pointer.hpp"
#include "os/open_files.hpp"
#include "os/path_names.hpp"
#include "triax/error.hpp"

namespace triax::hf {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxIndexBytes = std::uint64_t{256} << 20;
constexpr std::size_t kOtherFiles = 64; // that are open beside those of the model
constexpr const char* kEnding = ".safetensors";

bool has_pickle_ending(const std::string& name) {
  constexpr std::array<std::string_view, 6> kEndings = {".bin", ".pt", ".pth", ".ckpt", ".pkl", ".bin.index.json"};
  return std::ranges::any_of(kEndings, [&](std::string_view ending) { return name.ends_with(ending); });
}

[[noreturn]] void refuse_pickled(const fs::path& folder, const std::string& name) {
  throw Error(text("{} is a pickled file, which can run any program when it is loaded; Triax reads safetensors only",
                   shortened(printable(name))),
              folder.string(),
              "if you trust its author, convert it with transformers: python3 -c \"from transformers import "
              "AutoModelForCausalLM as M; M.from_pretrained('DIR').save_pretrained('NEW_DIR')\"");
}

/// Why the folder has no weights that can be read.
[[noreturn]] void refuse_without_weights(const fs::path& folder) {
  constexpr std::array<std::string_view, 5> kOthers = {".gguf", ".h5", ".msgpack", ".onnx", ".npz"};
  std::set<std::string> names;
  std::error_code unreadable;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, unreadable))
    names.insert(entry.path().filename().string());
  if (unreadable) throw Error("cannot be read: " + unreadable.message(), folder.string(), "let this user read it");
  for (const std::string& name : names)
    if (has_pickle_ending(name)) refuse_pickled(folder, name);
  for (const std::string& name : names)
    if (std::ranges::any_of(kOthers, [&](std::string_view ending) { return name.ends_with(ending); }))
      throw Error(
          text("has no {}, but {} is of a format that Triax does not read", kSingleFile, shortened(printable(name))),
          folder.string(), "convert it with transformers' save_pretrained()");
  throw Error(text("has neither {} nor {}", kSingleFile, kIndexFile), folder.string(), kNameModelFolder);
}

/// The file that an index names for a tensor.
std::string indexed_file(const fs::path& index, const std::string& tensor, const Json& value) {
  std::string named = value.is_string() ? value.get<std::string>() : value.dump();
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  if (has_pickle_ending(named)) refuse_pickled(index.parent_path(), named);
  if (!value.is_string() || named.find('/') != std::string::npos || named.starts_with('.') ||
      !named.ends_with(kEnding) || std::ranges::any_of(named, is_control))
    throw Error(text("names {} for tensor \"{}\", which is not a safetensors file of the folder",
                     value.is_string() ? text("\"{}\"", shortened(printable(named))) : shortened(printable(named)),
                     shortened(printable(tensor))),
                index.string(), kDownloadAgain);
  return named;
}

std::map<std::string, std::string> read_index(const fs::path& path) {
  const Json json = read_json_file(path, kMaxIndexBytes);
  const auto map = json.find("weight_map");
  if (map == json.end() || !map->is_object() || map->empty())
    throw Error("has no weight_map", path.string(), kDownloadAgain);
  std::map<std::string, std::string> out;
  for (const auto& [tensor, file] : map->items()) out[tensor] = indexed_file(path, tensor, file);
  return out;
}

/// Refuses a tensor for which the index does not name the file that has it.
void check_file(const std::string& tensor, const fs::path& file, const std::map<std::string, std::string>& index) {
  const auto named = index.find(tensor);
  if (named != index.end() && named->second == file.filename()) return;
  throw Error(
      text("tensor \"{}\" is in this file, but the index {}", shortened(printable(tensor)),
           named == index.end() ? "does not name it" : text("names {} for it", shortened(printable(named->second)))),
      file.string(), kDownloadAgain);
}

} // namespace

ModelTensors::ModelTensors(fs::path folder) : folder_(std::move(folder)) {
  const fs::path single = folder_ / kSingleFile, index = folder_ / kIndexFile;
  if (os::is_there(single) && os::is_there(index))
    throw Error(text("has both {} and {}", kSingleFile, kIndexFile), folder_.string(),
                "remove the one that is not of this model");
  if (os::is_there(single)) {
    add_file(single, nullptr);
  } else if (os::is_there(index)) {
    add_indexed_files(index);
  } else {
    refuse_without_weights(folder_);
  }
}

void ModelTensors::add_indexed_files(const fs::path& index) {
  const std::map<std::string, std::string> map = read_index(index);
  std::set<std::string> files;
  for (const auto& [tensor, file] : map) files.insert(file);
  if (files.size() > kMaxModelFiles)
    throw Error(text("lists {} files; the maximum is {}", files.size(), kMaxModelFiles), index.string(),
                "save the model in fewer, larger files");
  os::raise_open_file_limit(files.size() + kOtherFiles);
  for (const std::string& file : files) {
    if (!os::is_there(folder_ / file))
      throw Error(text("names the file {}, which does not exist", shortened(printable(file))), index.string(),
                  kDownloadAgain);
    add_file(folder_ / file, &map);
  }
  for (const auto& [tensor, file] : map)
    if (!tensors_.contains(tensor) && !foreign_.contains(tensor))
      throw Error(text("tensor \"{}\" is missing, although the index says that it is in this file",
                       shortened(printable(tensor))),
                  (folder_ / file).string(), kDownloadAgain);
}

void ModelTensors::add_file(const fs::path& path, const std::map<std::string, std::string>* index) {
  os::InputFile file(path, kDownloadAgain);
  refuse_lfs_pointer(file, path);
  checkpoint::SafetensorsHeader header = checkpoint::read_header(file, path);
  const auto add = [&](auto& entry, auto& all) {
    const std::string name = entry.name;
    if (index) check_file(name, path, *index);
    all[name] = {std::move(entry), files_.size()};
  };
  for (checkpoint::TensorEntry& entry : header.entries) add(entry, tensors_);
  for (checkpoint::ForeignTensor& entry : header.others) add(entry, foreign_);
  files_.push_back({path, std::move(file), header.bytes});
}

void ModelTensors::read(const Tensor& tensor, std::uint64_t offset, std::span<std::byte> out) const {
  const File& file = files_[tensor.file];
  file.file.read_at(file.data + tensor.entry.begin + offset, out);
}

} // namespace triax::hf
