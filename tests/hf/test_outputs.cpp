// SPDX-License-Identifier: Apache-2.0
// What import and export write: names that are refused before anything is read, and nothing left behind by a failure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "hf/carried_files.hpp"
#include "hf/run_toml.hpp"
#include "reference_model.hpp"
#include "support/error_of.hpp"

namespace triax::hf {
namespace {

namespace fs = std::filesystem;

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class Outputs : public ::testing::Test {
 protected:
  Outputs() { fs::copy(reference("gpt2-inner"), folder_ / "model"); }

  std::string import_refusal(const fs::path& output, const fs::path& run, const fs::path& model = "model") {
    return error_of([&] {
      ModelImport({.folder = folder_.path() / model, .output = folder_.path() / output, .run = folder_.path() / run});
    });
  }
  std::string export_refusal(const fs::path& folder, const fs::path& files = {}) {
    checkpoint::TensorReader reader(folder_ / "imported");
    return error_of([&] {
      ModelExport(reader,
                  {.folder = folder_.path() / folder, .files = files.empty() ? fs::path() : folder_.path() / files});
    });
  }
  std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder_.path())) out.push_back(entry.path().filename().string());
    return out;
  }
  const test::TempFolder folder_;
};

TEST_F(Outputs, OfAnImportAreRefusedBeforeTheModelIsRead) {
  fs::remove(folder_ / "model/config.json"); // each refusal comes before that of the missing file
  fs::create_directory(folder_ / "old");
  test::write_file(folder_ / "old.toml", "");
  EXPECT_THAT(import_refusal("old", "x.toml"), HasSubstr("old: already exists"));
  EXPECT_THAT(import_refusal("old/", "x.toml"), HasSubstr("old: already exists"));
  EXPECT_THAT(import_refusal("no/x", "x.toml"), HasSubstr("no/x: cannot be created: No such file or directory"));
  EXPECT_THAT(import_refusal("old.toml/x", "x.toml"), HasSubstr("old.toml is a file, not a folder"));
  EXPECT_THAT(import_refusal("step-00000001/", "x.toml"),
              HasSubstr("is a name that a run would take for its own checkpoint"));
  EXPECT_THAT(import_refusal("x", "old.toml"), HasSubstr("old.toml: already exists"));
  EXPECT_THAT(import_refusal("x", "no/x.toml"), HasSubstr("no/x.toml: cannot be created: No such file or directory"));
  EXPECT_THAT(import_refusal("x", "old.toml/x.toml"), HasSubstr("old.toml is a file, not a folder"));
  EXPECT_THAT(import_refusal("x", std::string(300, 'x') + ".toml"), HasSubstr("cannot be created: File name too long"));
  const std::string nearly(250, 'x'); // too long for the temporary name that a write needs
  EXPECT_THAT(import_refusal(nearly, "x.toml"),
              HasSubstr("cannot be created: File name too long: 250 bytes; at most 2"));
  EXPECT_THAT(import_refusal("x", nearly.substr(5) + ".toml"),
              HasSubstr("cannot be created: File name too long: 250 bytes; at most 2"));
  EXPECT_THAT(import_refusal("x", "x"), HasSubstr("--run must name a file that ends with .toml"));
  EXPECT_THAT(import_refusal("x", "x/run.toml"), HasSubstr("x/run.toml: is in the folder of --output"));
  EXPECT_THAT(import_refusal("x/", "old/../x/run.toml"), HasSubstr("is in the folder of --output"));
  EXPECT_THAT(import_refusal("model/x", "x.toml"), HasSubstr("model/x: is in the model's folder"));
  fs::create_directory_symlink("model", folder_ / "link");
  EXPECT_THAT(import_refusal("link/x", "x.toml"), HasSubstr("link/x: is in the model's folder"));
  EXPECT_THAT(import_refusal("x", "x.toml", "no"), HasSubstr("no: does not exist"));
  EXPECT_THAT(import_refusal("x", "x.toml", "model/model.safetensors"),
              HasSubstr("model.safetensors: is not a folder"));
  EXPECT_THAT(error_of([&] { ModelImport({.folder = {}, .output = folder_ / "x", .run = folder_ / "x.toml"}); }),
              HasSubstr("DIR is empty"));
  EXPECT_THAT(import_refusal("x", "x.toml"), HasSubstr("config.json: does not exist"));
  EXPECT_THAT(names(), UnorderedElementsAre("model", "old", "old.toml", "link"));
}

TEST_F(Outputs, OfAnExportAreRefusedBeforeTheWeightsAreRead) {
  import_model(folder_ / "model", folder_ / "imported");
  fs::remove(folder_ / "imported/weights-00000.safetensors");
  test::write_file(folder_ / "file", "");
  EXPECT_THAT(export_refusal("imported"), HasSubstr("imported: already exists"));
  EXPECT_THAT(export_refusal("imported/"), HasSubstr("imported: already exists"));
  EXPECT_THAT(export_refusal("file"), HasSubstr("file: already exists"));
  EXPECT_THAT(export_refusal("file/x"), HasSubstr("file is a file, not a folder"));
  EXPECT_THAT(export_refusal("imported/x"), HasSubstr("imported/x: is in a checkpoint"));
  EXPECT_THAT(export_refusal("imported/hf/x/"), HasSubstr("imported/hf/x: is in a checkpoint"));
  EXPECT_THAT(export_refusal("no/x"), HasSubstr("no/x: cannot be created: No such file or directory"));
  EXPECT_THAT(export_refusal("x.safetensors"), HasSubstr("DIR must be a folder, but this is the name of a file"));
  EXPECT_THAT(export_refusal("x", "no"), HasSubstr("no: does not exist"));
  EXPECT_THAT(export_refusal("x", "file"), HasSubstr("file: is not a folder"));
  EXPECT_EQ(export_refusal("x"), "no error");
  test::write_file(folder_ / "imported/hf/config.json", "{");
  EXPECT_THAT(export_refusal("x"), HasSubstr("imported/hf/config.json: is not valid JSON at line 1, column 2"));
  EXPECT_THAT(names(), UnorderedElementsAre("model", "imported", "imported.toml", "file"));
}

TEST_F(Outputs, MayBeNamedWithASlash) {
  ModelImport from({.folder = (folder_ / "model").string() + "/",
                    .output = (folder_ / "imported").string() + "//",
                    .run = folder_ / "run.toml"});
  ASSERT_TRUE(from.refusals().empty());
  EXPECT_EQ(from.write().output, folder_ / "imported");
  EXPECT_THAT(test::read_file(folder_ / "run.toml"), HasSubstr("from = \"imported\"\n"));
  EXPECT_THAT(test::read_file(folder_ / "run.toml"), HasSubstr(text("GPT2LMHeadModel of \"{}\", ", folder_ / "model")));
  const ExportedModel made = export_model(folder_ / "imported", {.folder = (folder_ / "exported").string() + "/./"});
  EXPECT_EQ(made.folder, folder_ / "exported");
  EXPECT_EQ(tensors_in(folder_ / "exported"), tensors_in(reference("gpt2-inner")));
  EXPECT_THAT(names(), UnorderedElementsAre("model", "imported", "run.toml", "exported"));
}

/// All problems of the folder are reported together.
TEST_F(Outputs, RefusalsOfTheConfigurationDoNotHideThoseOfFiles) {
  std::string config = test::read_file(folder_ / "model/config.json");
  test::write_file(folder_ / "model/config.json", config.replace(config.find("gelu_pytorch_tanh"), 17, "relu"));
  fs::remove(folder_ / "model/model.safetensors");
  const ModelImport from({.folder = folder_ / "model", .output = folder_ / "x", .run = folder_ / "x.toml"});
  ASSERT_EQ(from.refusals().size(), 2u);
  EXPECT_THAT(from.refusals()[0].message, HasSubstr("activation_function = \"relu\" is not supported by model-gpt"));
  EXPECT_THAT(from.refusals()[1].message, HasSubstr("model: has neither model.safetensors nor"));
}

/// The outputs have their names only when both are complete.
TEST_F(Outputs, AreBothThereOrNone) {
  const auto import_while = [&](const std::function<bool()>& stop) {
    ModelImport from({.folder = folder_ / "model", .output = folder_ / "x", .run = folder_ / "x.toml"});
    return error_of([&] { from.write(stop); });
  };
  EXPECT_THAT(import_while([] { return true; }), HasSubstr("stopped by a signal"));
  EXPECT_THAT(names(), ElementsAre("model"));
  int asked = 0;
  EXPECT_EQ(import_while([&] { return ++asked < 0; }), "no error");
  for (int last = 1; last <= asked; ++last) { // a signal at any moment
    fs::remove_all(folder_ / "x");
    fs::remove(folder_ / "x.toml");
    int again = 0;
    EXPECT_THAT(import_while([&] { return ++again >= last; }), HasSubstr("stopped by a signal"));
    EXPECT_THAT(names(), ElementsAre("model")) << last;
  }
  const auto create_run = [&] { // another process
    test::write_file(folder_ / "x.toml", "mine");
    return false;
  };
  EXPECT_THAT(import_while(create_run),
              HasSubstr("x.toml: cannot be written: File exists\n  another process has created it: name another"));
  EXPECT_THAT(names(), UnorderedElementsAre("model", "x.toml"));
  EXPECT_EQ(test::read_file(folder_ / "x.toml"), "mine");
  fs::remove(folder_ / "x.toml");
  const auto create_output = [&] {
    fs::create_directories(folder_ / "x");
    return false;
  };
  EXPECT_THAT(import_while(create_output),
              HasSubstr("x: cannot be written: File exists\n  another process has created it: name another"));
  EXPECT_THAT(names(), UnorderedElementsAre("model", "x"));
  EXPECT_TRUE(fs::is_empty(folder_ / "x"));
}

TEST_F(Outputs, OfAnExportAreCompleteOrNotThere) {
  import_model(folder_ / "model", folder_ / "imported");
  const auto export_while = [&](const std::function<bool()>& stop) {
    checkpoint::TensorReader reader(folder_ / "imported");
    ModelExport to(reader, {.folder = folder_ / "x", .shard_bytes = 1000});
    return error_of([&] { to.write(stop); });
  };
  int asked = 0;
  EXPECT_EQ(export_while([&] { return ++asked < 0; }), "no error");
  for (int last = 1; last <= asked; ++last) {
    fs::remove_all(folder_ / "x");
    int again = 0;
    EXPECT_THAT(export_while([&] { return ++again >= last; }), HasSubstr("stopped by a signal"));
    EXPECT_THAT(names(), UnorderedElementsAre("model", "imported", "imported.toml")) << last;
  }
}

TEST_F(Outputs, HaveTheFilesOfATokenizer) {
  for (const auto& names : std::vector<std::vector<std::string>>{
           {"tokenizer.json"}, {"vocab.json", "merges.txt"}, {"tokenizer.model", "generation_config.json"}})
    EXPECT_TRUE(has_tokenizer(names)) << names.front();
  for (const auto& names : std::vector<std::vector<std::string>>{
           {},
           {"vocab.json"},
           {"merges.txt"},
           {"tokenizer_config.json", "special_tokens_map.json", "generation_config.json"}})
    EXPECT_FALSE(has_tokenizer(names));
  import_model(folder_ / "model", folder_ / "imported");
  EXPECT_THAT(export_refusal("x", "model"), // it has generation_config.json only
              HasSubstr("model: has no tokenizer: tokenizer.json, vocab.json with merges.txt, or tokenizer.model"));
  test::write_file(folder_ / "model/tokenizer.json", "{}");
  EXPECT_EQ(export_refusal("x", "model/"), "no error");
  EXPECT_THAT(export_model(folder_ / "imported", {.folder = folder_ / "x", .files = folder_ / "model"}).files,
              ElementsAre("tokenizer.json", "generation_config.json"));
  fs::remove(folder_ / "model/tokenizer.json");
  fs::create_symlink("/dev/zero", folder_ / "model/tokenizer.json");
  EXPECT_THAT(export_refusal("y", "model"), HasSubstr("tokenizer.json: is a character device, not a regular file"));
  const ModelImport from({.folder = folder_ / "model", .output = folder_ / "y", .run = folder_ / "y.toml"});
  ASSERT_EQ(from.refusals().size(), 1u);
  EXPECT_THAT(from.refusals()[0].message, HasSubstr("tokenizer.json: is a character device, not a regular file"));
}

/// Paths are relative to the folder of the TOML, without links: the run looks them up from there.
TEST(RunToml, NamesPathsFromItsFolder) {
  const test::TempFolder folder;
  fs::create_directories(folder / "deep/er");
  fs::create_directory_symlink("deep/er", folder / "link");
  const auto toml = [&](const fs::path& run) {
    return run_toml({.comment = "c",
                     .run = run,
                     .checkpoint = folder / "out",
                     .data = (folder / "text").string(),
                     .paths = {},
                     .model = {}});
  };
  EXPECT_THAT(toml(folder / "run.toml"), HasSubstr("from = \"out\"\n"));
  EXPECT_THAT(toml(folder.path() / "link/run.toml"), HasSubstr("from = \"../../out\"\n"));
  EXPECT_THAT(toml(folder.path() / "link/run.toml"), HasSubstr("path = \"../../text\"\n"));
}

} // namespace
} // namespace triax::hf
