// SPDX-License-Identifier: Apache-2.0
#include "plugins/plugin_template.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <span>
#include <system_error>

#include "os/durable_file.hpp"
#include "os/folder_access.hpp"
#include "plugin/loader.hpp"
#include "triax/error.hpp"

namespace triax::app {

namespace {

namespace fs = std::filesystem;

constexpr const char* kWriteHint = "choose another folder with --dir";

std::string with_underscores(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

void replace_all(std::string& in, const std::string& old_text, const std::string& text) {
  for (std::size_t at = 0; (at = in.find(old_text, at)) != std::string::npos; at += text.size())
    in.replace(at, old_text.size(), text);
}

std::string read_file(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string out{std::istreambuf_iterator<char>(in), {}};
  if (!in) throw Error("cannot be read", file.string(), "install Triax again, or make the file readable");
  return out;
}

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code unreadable;
  for (fs::recursive_directory_iterator entry(folder, unreadable), end; !unreadable && entry != end;
       entry.increment(unreadable))
    if (entry->is_regular_file()) out.push_back(fs::relative(entry->path(), folder));
  if (unreadable || out.empty())
    throw Error(text("no template: {}", unreadable ? unreadable.message() : "the folder is empty"), folder.string(),
                "install the files for plugin authors: the package triax-dev, or the component development");
  std::sort(out.begin(), out.end());
  return out;
}

/// Removes a folder unless it has been renamed.
class Partial {
 public:
  explicit Partial(fs::path folder) : folder_(std::move(folder)) {}
  Partial(const Partial&) = delete;
  Partial& operator=(const Partial&) = delete;
  ~Partial() {
    std::error_code gone;
    fs::remove_all(folder_, gone);
  }
  const fs::path& folder() const { return folder_; }

 private:
  const fs::path folder_;
};

} // namespace

fs::path templates_folder() {
  return plugin::core_folder().parent_path() / "share" / "triax" / "templates";
}

std::string template_name(std::string_view prefix) {
  return std::string(prefix) + "template";
}

std::vector<fs::path> copy_template(const fs::path& folder, const std::string& old_name, const std::string& name,
                                    const fs::path& destination) {
  if (const std::string why = os::why_not_creatable(destination); !why.empty())
    throw Error("cannot be created: " + why, destination.string(), kWriteHint);
  std::vector<fs::path> files = files_of(folder);
  const Partial partial(os::partial_name(destination));
  const auto create = [&destination](const fs::path& of) {
    std::error_code failed;
    fs::create_directories(of, failed);
    if (failed) throw Error(text("cannot be created: {}", failed.message()), destination.string(), kWriteHint);
  };
  for (const fs::path& file : files) {
    std::string content = read_file(folder / file);
    replace_all(content, old_name, name);
    replace_all(content, with_underscores(old_name), with_underscores(name));
    create((partial.folder() / file).parent_path());
    os::DurableFile out(partial.folder() / file, {destination / file, kWriteHint});
    out.write(std::as_bytes(std::span(content)));
    out.finish();
  }
  os::rename_to_new(partial.folder(), destination, kWriteHint);
  return files;
}

} // namespace triax::app
