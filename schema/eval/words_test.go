package eval

import "strings"

// vocabulary is words of each language, of which texts are made.
var vocabulary = map[string][]string{
	"en":    strings.Fields("the a model reads every line of this file before it edits anything and then it answers with what was found there please check again whether tests pass I'm going to look at how requests are handled first because error messages differ between versions Let me see what happens when we change that value"),
	"de":    strings.Fields("der die das Straße über größer können für Änderung schließlich prüfen Datei wird gelesen und dann geschrieben während Fehler häufig natürlich möglich bitte öffnen"),
	"ru":    strings.Fields("это файл который мы читаем каждый день потом пишем снова ошибка сервер ответ запрос пожалуйста проверьте значение поля очень просто"),
	"ar":    strings.Fields("هذا الملف الذي نقرأه كل يوم ثم نكتب مرة أخرى خطأ في الخادم يرجى التحقق من القيمة"),
	"zh":    strings.Fields("我们 今天 修改 文件 然后 重新 运行 测试 请 检查 服务器 返回 的 错误 信息 是否 正确 这个 函数 需要 参数 ，好的 。如果"),
	"ja":    strings.Fields("これは ファイル を 読み込んで から テスト を 実行 します エラー が 発生 しました 確認 して ください 関数 の 引数 です 、また 。"),
	"ko":    strings.Fields("파일을 읽고 나서 다시 저장 합니다 오류가 발생했습니다 서버 응답을 확인 하세요 함수의 인자 입니다"),
	"th":    strings.Fields("ไฟล์ นี้ อ่าน ทุกวัน แล้ว เขียน ใหม่ ข้อผิดพลาด เซิร์ฟเวอร์ กรุณา ตรวจสอบ"),
	"hi":    strings.Fields("यह फ़ाइल हम रोज़ पढ़ते हैं फिर लिखते त्रुटि सर्वर कृपया जाँच करें मान"),
	"el":    strings.Fields("αυτό το αρχείο διαβάζεται κάθε μέρα και μετά γράφεται σφάλμα διακομιστή παρακαλώ ελέγξτε"),
	"emoji": strings.Fields("👍 🎉 done ✅ ok 🚀 👩‍💻 🔧 fix ❌ no 👍🏽 great 🇩🇪 ⚠️ careful"),
}

// separator stands between the words of a language.
var separator = map[string]string{"en": " ", "de": " ", "ru": " ", "ar": " ", "zh": "", "ja": "", "ko": " ", "th": "", "hi": " ", "el": " ", "emoji": " "}
