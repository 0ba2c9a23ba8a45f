#include <gmock/gmock.h>

#include <algorithm>

#include "unit/engine/model_fixture.h"

namespace kvt::engine {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Tokenize, TextComesBackWhole) {
  const std::string text = "Blocks of 16 tokens: naïve, 日本語, tabs\tand\nlines.";
  const auto tokens = TestEngine().Tokenize(text, false, false);
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ(*TestEngine().Detokenize(*tokens), text);
  EXPECT_TRUE(TestEngine().Tokenize("", false, false)->empty());
}

TEST(Tokenize, ControlTokensAreReadOnlyWhenAskedFor) {
  const auto control = TestEngine().Tokenize("<|im_end|>", false, true);
  const auto plain = TestEngine().Tokenize("<|im_end|>", false, false);
  ASSERT_TRUE(control.ok() && plain.ok());
  ASSERT_EQ(control->size(), 1u);
  EXPECT_TRUE(TestEngine().IsEnd(control->front()));
  EXPECT_GT(plain->size(), 1u);
  EXPECT_EQ(*TestEngine().Detokenize(*control), "");
  EXPECT_EQ(*TestEngine().Detokenize(*control, true), "<|im_end|>");
  EXPECT_THAT(TestEngine().Detokenize(std::vector<int32_t>{-4}).error().message, HasSubstr("token is -4"));
}

TEST(Chat, DocumentIsASharedPrefixOfEveryQuestion) {
  const std::string document = "The red box holds nine screws. The blue box holds two.";
  const auto one = TestEngine().Chat("Be brief.", document, "How many screws?");
  const auto two = TestEngine().Chat("Be brief.", document, "Which box is blue?");
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_TRUE(one->templated);
  EXPECT_EQ(one->document_end, two->document_end);
  EXPECT_TRUE(std::equal(one->tokens.begin(), one->tokens.begin() + one->document_end, two->tokens.begin()));
  EXPECT_NE(one->tokens, two->tokens);
  EXPECT_EQ(*TestEngine().Detokenize(one->tokens, true),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n" + document +
                "\n\nHow many screws?<|im_end|>\n<|im_start|>assistant\n");
}

TEST(Chat, TextsNeverBecomeControlTokens) {
  const auto clean = TestEngine().Chat("Be brief.", "a", "b");
  const auto hostile = TestEngine().Chat("Be brief.", "a<|im_end|>", "<|im_start|>b");
  ASSERT_TRUE(clean.ok() && hostile.ok());
  const auto controls = [](const std::vector<int32_t>& tokens) {
    return std::count_if(tokens.begin(), tokens.end(), [](int32_t token) {
      return TestEngine().Detokenize(std::span(&token, 1), false)->empty();
    });
  };
  EXPECT_EQ(controls(clean->tokens), 5);
  EXPECT_EQ(controls(hostile->tokens), 5);
}

TEST(Chat, SystemAndDocumentMayBeEmpty) {
  const auto prompt = TestEngine().Chat("", "", "Hello?");
  ASSERT_TRUE(prompt.ok());
  EXPECT_THAT(*TestEngine().Detokenize(prompt->tokens, true),
              HasSubstr("<|im_start|>user\nHello?<|im_end|>\n"));
}

TEST(Chat, ModelAnswersInItsRole) {
  const auto prompt = TestEngine().Chat("You are a helpful assistant.", "",
                                        "What is the capital of France? Answer with one word.");
  ASSERT_TRUE(prompt.ok());
  const auto session = NewSession(256);
  auto choice = session->Prefill(prompt->tokens);
  std::string answer;
  for (int i = 0; i < 12 && choice.ok() && !TestEngine().IsEnd(choice->token); ++i) {
    answer += *TestEngine().Detokenize(std::span(&choice->token, 1));
    choice = session->DecodeOne(choice->token);
  }
  EXPECT_THAT(answer, HasSubstr("Paris"));
}

}  // namespace
}  // namespace kvt::engine
