// SPDX-License-Identifier: Apache-2.0
// Preparation of token files from text: contents, refused requests, and the files left after a failure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <stdexcept>

#include "data/dataset.hpp"
#include "data/document_splitter.hpp"
#include "data/prefix_lock.hpp"
#include "data/prepare.hpp"
#include "data/token_writer.hpp"
#include "data/tokenizer_choice.hpp"
#include "support/error_of.hpp"
#include "support/file_size_limit.hpp"
#include "support/temp_folder.hpp"

namespace triax::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using namespace triax::test;

PrepareRequest request_of(const TempFolder& folder, const std::vector<std::string>& texts) {
  PrepareRequest request;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    request.inputs.push_back(folder / ("in" + std::to_string(i)));
    write_file(request.inputs.back(), texts[i]);
  }
  request.output = folder / "out";
  request.tokenizer.name = "byte";
  return request;
}

/// The stream as text, with "|" for the end of a document.
std::string stream_of(const std::filesystem::path& prefix) {
  const TokenFile file(prefix);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(file.tokens()));
  file.read(0, tokens);
  std::string out;
  for (const std::int32_t token : tokens) out += token == 256 ? '|' : static_cast<char>(token);
  return out;
}

std::vector<std::string> names_in(const TempFolder& folder) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    out.push_back(entry.path().filename().string());
  return out;
}

std::vector<std::string> reasons(const PrepareRequest& request) {
  std::vector<std::string> out;
  for (const Refusal& refusal : refusals(request)) out.push_back(refusal.message);
  return out;
}

/// The flags that the refusals lead with.
std::vector<std::string> first_keys(const PrepareRequest& request) {
  std::vector<std::string> out;
  for (const Refusal& refusal : refusals(request)) out.push_back(refusal.keys.empty() ? "" : refusal.keys.front());
  return out;
}

TEST(Prepare, EachInputIsADocumentInTheOrderGiven) {
  const TempFolder folder;
  const PrepareRequest request = request_of(folder, {"zwei\n", "eins"});
  EXPECT_THAT(reasons(request), IsEmpty());
  const Prepared made = prepare(request, {});
  EXPECT_EQ(stream_of(folder / "out"), "zwei\n|eins|");
  EXPECT_EQ(made.train.documents, 2);
  EXPECT_EQ(made.train.tokens, 11);
  EXPECT_EQ(made.train.bytes, std::filesystem::file_size(folder / "out.bin"));
  EXPECT_FALSE(made.validation);
  EXPECT_THAT(names_in(folder), UnorderedElementsAre("in0", "in1", "out.bin", "out.idx", "out.json"));
}

TEST(Prepare, WritesTheBytesOfMegatronsFormat) {
  const TempFolder folder;
  prepare(request_of(folder, {"ab", "c"}), {});
  EXPECT_EQ(read_file(folder / "out.bin"), std::string("a\0b\0\0\1c\0\0\1", 10));
  std::string index("MMIDIDX\0\0\1\0\0\0\0\0\0\0\x08", 18);
  const auto number = [&index](std::int64_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) index += static_cast<char>(value >> (8 * i));
  };
  for (const int count : {2, 3}) number(count, 8);
  for (const int size : {3, 2}) number(size, 4);
  for (const int pointer : {0, 6}) number(pointer, 8);
  for (const int document : {0, 1, 2}) number(document, 8);
  EXPECT_EQ(read_file(folder / "out.idx"), index);
  EXPECT_EQ(read_file(folder / "out.json"), "{\"tokenizer\":\"byte\",\"vocab\":257,\"end_of_document\":256}\n");
}

TEST(Prepare, EveryByteComesBack) {
  const TempFolder folder;
  std::string text;
  for (unsigned i = 0; i < 300'000; ++i) text += static_cast<char>((i * i) >> 3);
  prepare(request_of(folder, {text}), {});
  const TokenFile file(folder / "out");
  ASSERT_EQ(file.tokens(), 300'001);
  std::vector<std::int32_t> tokens(300'001);
  file.read(0, tokens);
  for (std::size_t i = 0; i < text.size(); ++i) ASSERT_EQ(tokens[i], static_cast<unsigned char>(text[i])) << i;
  EXPECT_EQ(tokens.back(), 256);
  EXPECT_FALSE(file.scan(257).outside);
}

TEST(Prepare, SplitsDocumentsAtTheSeparator) {
  const TempFolder folder;
  PrepareRequest request = request_of(folder, {"one\n%\ntwo\n%%\n%\n", "three\n%\n%\n\n% \nfour"});
  request.separator = "%";
  const Prepared made = prepare(request, {});
  EXPECT_EQ(stream_of(folder / "out"), "one\n|two\n%%\n|three\n|\n% \nfour|");
  EXPECT_EQ(made.train.documents, 4);
}

TEST(Prepare, PutsEveryTenthDocumentAside) {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 25; ++i) text += std::string(1, static_cast<char>('a' + i)) + "\n%\n";
  PrepareRequest request = request_of(folder, {text});
  request.separator = "%";
  request.validation_fraction = 0.1;
  const Prepared made = prepare(request, {});
  EXPECT_EQ(stream_of(folder / "out-validation"), "j\n|t\n|");
  EXPECT_EQ(stream_of(folder / "out").size(), 23u * 3);
  ASSERT_TRUE(made.validation);
  EXPECT_EQ(made.validation->documents, 2);
  EXPECT_EQ(made.train.documents, 23);
  EXPECT_EQ(read_tokenizer_info(folder / "out-validation").vocab, 257);
}

TEST(Prepare, TheSameInputGivesTheSameBytes) {
  const TempFolder a, b;
  for (const TempFolder* folder : {&a, &b}) {
    PrepareRequest request = request_of(*folder, {"one\n%\ntwo\n%\nthree\n", "four"});
    request.separator = "%";
    request.validation_fraction = 0.25;
    prepare(request, {});
  }
  for (const char* name : {"out.bin", "out.idx", "out.json", "out-validation.bin", "out-validation.idx"})
    EXPECT_EQ(read_file(a / name), read_file(b / name)) << name;
}

TEST(Prepare, ReportsProgress) {
  const TempFolder folder;
  const PrepareRequest request = request_of(folder, {"file", "other"});
  std::vector<std::uint64_t> read;
  prepare(request, [&read](std::uint64_t done, std::uint64_t total) {
    read.push_back(done);
    EXPECT_EQ(total, 9u);
  });
  EXPECT_THAT(read, ElementsAre(4, 9, 9));
}

/// A signal stops the program at any call in the same way.
TEST(Prepare, StoppedByItsProgressItLeavesNothingAndTheOldFiles) {
  for (const int stopping_call : {1, 2, 3}) {
    const TempFolder folder;
    PrepareRequest request = request_of(folder, {"old", "text"});
    prepare(request, {});
    request.inputs.pop_back();
    request.inputs.push_back(folder / "in0");
    request.force = true;
    int calls = 0;
    const auto stop = [&](std::uint64_t, std::uint64_t) {
      if (++calls == stopping_call) throw std::runtime_error("stop");
    };
    EXPECT_THROW(prepare(request, stop), std::runtime_error);
    EXPECT_THAT(names_in(folder), UnorderedElementsAre("in0", "in1", "out.bin", "out.idx", "out.json"));
    EXPECT_EQ(stream_of(folder / "out"), "old|text|");
  }
}

TEST(Prepare, MakesTheFolderOfItsOutput) {
  const TempFolder folder;
  PrepareRequest request = request_of(folder, {"text"});
  request.output = folder.path() / "new" / "deep" / "out";
  EXPECT_THAT(reasons(request), IsEmpty());
  prepare(request, {});
  EXPECT_EQ(stream_of(request.output), "text|");
}

// Refusals.

TEST(PrepareRefuses, AFolderThatTakesNoFiles) {
  const TempFolder folder;
  PrepareRequest request = request_of(folder, {"text"});
  request.validation_fraction = 0.5;
  request.output = "/proc/out";
  EXPECT_THAT(reasons(request),
              ElementsAre("--output /proc/out: cannot be written: /proc is part of a kernel file system, where "
                          "files cannot be created"));
  request.output = folder / "in0/out";
  EXPECT_THAT(reasons(request), ElementsAre("--output " + request.output.string() + ": cannot be written: " +
                                            (folder / "in0").string() + " is a file, not a folder"));
}

TEST(PrepareRefuses, AllAtOnce) {
  const TempFolder folder;
  PrepareRequest request = request_of(folder, {"", "text"});
  request.inputs.push_back(folder / "missing");
  request.inputs.push_back(folder.path());
  request.inputs.push_back(folder.path() / "." / "in1");
  request.tokenizer.name = "bpe";
  request.separator = "";
  request.validation_fraction = 1;
  const std::string at = folder.path().string();
  EXPECT_THAT(reasons(request),
              ElementsAre("--tokenizer must be byte, gpt2 or the path of a tokenizer.json, got bpe",
                          "--separator must be a line of text without a line break",
                          "--validation-fraction must be in [0, 1), got 1", "--input " + at + "/in0: is empty",
                          "--input " + at + "/missing: does not exist",
                          "--input " + at + ": is a folder; an input is a text file",
                          "--input lists " + at + "/./in1 twice, also as " + at + "/in1"));
  EXPECT_THAT(first_keys(request), ElementsAre("--tokenizer", "--separator", "--validation-fraction", "--input",
                                               "--input", "--input", "--input"));
  EXPECT_EQ(refusals(request).front().code, ErrorCode::kInvalidValue);
  request.inputs.clear();
  EXPECT_THAT(reasons(request), ::testing::Contains("--input names no file"));
}

TEST(PrepareRefuses, InputsThatAreNotFiles) {
  const TempFolder folder;
  PrepareRequest request = request_of(folder, {"text"});
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  request.inputs = {folder / "pipe", "/dev/zero"};
  EXPECT_THAT(reasons(request),
              ElementsAre("--input " + (folder / "pipe").string() + ": is a pipe; an input is a text file",
                          "--input /dev/zero: is a device; an input is a text file"));
  EXPECT_EQ(refusals(request).front().hint, "write its output to a file first");
}

TEST(PrepareRefuses, ToOverwriteUnlessForced) {
  const TempFolder folder;
  PrepareRequest request = request_of(folder, {"old"});
  prepare(request, {});
  write_file(folder / "in0", "new");
  const Refusals refused = refusals(request);
  ASSERT_EQ(refused.size(), 3u);
  EXPECT_EQ(refused[0].message, (folder / "out.bin").string() + ": already exists");
  EXPECT_EQ(refused[0].hint, "add --force to replace it");
  request.force = true;
  EXPECT_THAT(reasons(request), IsEmpty());
  prepare(request, {});
  EXPECT_EQ(stream_of(folder / "out"), "new|");
}

TEST(PrepareRefuses, APrefixThatAnotherProcessWrites) {
  const TempFolder folder;
  PrepareRequest request = request_of(folder, {"text"});
  request.force = true;
  {
    const PrefixLock other(request.output);
    write_file(folder / "out.bin.partial", "of the other process");
    EXPECT_THAT(triax::test::error_of([&] { prepare(request, {}); }),
                HasSubstr("out: another process is writing this dataset"));
    EXPECT_EQ(read_file(folder / "out.bin.partial"), "of the other process");
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "out.lock"));
  write_file(folder / "out.lock", ""); // as a killed process leaves it
  prepare(request, {});
  EXPECT_FALSE(std::filesystem::exists(folder / "out.lock"));
}

TEST(PrepareRefuses, ToReplaceLinksAndPipesEvenIfForced) {
  const TempFolder folder;
  PrepareRequest request = request_of(folder, {"text"});
  request.force = true;
  std::filesystem::create_symlink("elsewhere", folder / "out.bin");
  ASSERT_EQ(::mkfifo((folder / "out.idx").c_str(), 0600), 0);
  const std::string at = folder.path().string();
  EXPECT_THAT(reasons(request), UnorderedElementsAre(at + "/out.bin: is a symbolic link, which the file would replace",
                                                     at + "/out.idx: is a pipe, not a file"));
}

TEST(PrepareRefuses, FilesLeftByAStoppedRunUnlessForced) {
  const TempFolder folder;
  PrepareRequest request = request_of(folder, {"text"});
  write_file(folder / "out.bin.partial", "left");
  EXPECT_THAT(reasons(request), ElementsAre(HasSubstr("out.bin.partial: already exists: a stopped run left it")));
  request.force = true;
  prepare(request, {});
  EXPECT_EQ(stream_of(folder / "out"), "text|");
}

TEST(PrepareRefuses, ToOverwriteAnInputEvenIfForced) {
  const TempFolder folder;
  PrepareRequest request = request_of(folder, {"text"});
  request.inputs.push_back(folder / "out.json");
  write_file(folder / "out.json", "a text of that name");
  request.force = true;
  EXPECT_THAT(reasons(request), ElementsAre(HasSubstr("out.json: is an input and would be overwritten")));
}

TEST(PrepareRefuses, InvalidPrefixes) {
  const TempFolder folder;
  PrepareRequest request = request_of(folder, {"text"});
  request.output = folder / "out.bin";
  EXPECT_THAT(reasons(request),
              ElementsAre(HasSubstr("--output must be a prefix, to which .bin, .idx and .json are added, got ")));
  EXPECT_EQ(refusals(request).front().code, ErrorCode::kInvalidValue);
  request.output = folder.path() / "";
  EXPECT_THAT(reasons(request), ElementsAre(HasSubstr("--output must be a prefix, got the folder ")));
  EXPECT_EQ(refusals(request).front().code, ErrorCode::kInvalidValue);
}

// Failures leave the earlier files and nothing else.

std::string failure_of(const PrepareRequest& request) {
  try {
    prepare(request, {});
  } catch (const Error& error) {
    return error.what();
  }
  return "(done)";
}

TEST(PrepareFails, OnAFullDiskAndLeavesTheOldFiles) {
  const TempFolder folder;
  PrepareRequest request = request_of(folder, {"old"});
  prepare(request, {});
  write_file(folder / "in0", std::string(10'000, 'x'));
  request.force = true;
  std::string failure;
  {
    const FileSizeLimit disk(5'000);
    failure = failure_of(request);
  }
  EXPECT_EQ(failure, (folder / "out.bin.partial").string() + ": cannot be written: File too large");
  EXPECT_EQ(stream_of(folder / "out"), "old|");
  EXPECT_THAT(names_in(folder), UnorderedElementsAre("in0", "out.bin", "out.idx", "out.json"));
}

TEST(PrepareFails, OnAnUnreadableInputAndLeavesNothing) {
  const TempFolder folder;
  PrepareRequest request = request_of(folder, {"text"});
  request.inputs.emplace_back("/proc/self/mem"); // opens, but reading fails
  EXPECT_EQ(failure_of(request), "/proc/self/mem: cannot read the bytes from 0 on: Input/output error");
  EXPECT_THAT(names_in(folder), UnorderedElementsAre("in0"));
}

/// It is a regular file when the request is checked.
TEST(PrepareFails, OnAnInputThatHasBecomeAPipe) {
  const TempFolder folder;
  PrepareRequest request = request_of(folder, {"text"});
  request.inputs.push_back(folder / "pipe");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(failure_of(request), (folder / "pipe").string() + ": is a FIFO, not a regular file");
  EXPECT_THAT(names_in(folder), UnorderedElementsAre("in0", "pipe"));
}

TEST(PrepareFails, WhenAWriterCannotStart) {
  const TempFolder folder;
  PrepareRequest request = request_of(folder, {"text"});
  write_file(folder / "out.idx.partial", "another writer's");
  EXPECT_EQ(failure_of(request), (folder / "out.idx.partial").string() + ": cannot be created: File exists");
  EXPECT_THAT(names_in(folder), UnorderedElementsAre("in0", "out.idx.partial"));
}

TEST(PrepareFails, WithoutText) {
  const TempFolder folder;
  PrepareRequest request = request_of(folder, {"%\n%\n"});
  request.separator = "%";
  EXPECT_EQ(failure_of(request),
            "the inputs contain no text\n"
            "  give --input files with text in them");
  EXPECT_THAT(names_in(folder), UnorderedElementsAre("in0"));
}

TEST(PrepareFails, IfADatasetWouldBeEmpty) {
  const TempFolder folder;
  PrepareRequest request = request_of(folder, {"one document"});
  request.validation_fraction = 0.1;
  EXPECT_THAT(failure_of(request),
              HasSubstr("--validation-fraction 0.1 of 1 document leaves the training or the validation dataset empty"));
  EXPECT_THAT(names_in(folder), UnorderedElementsAre("in0"));
}

} // namespace
} // namespace triax::data
