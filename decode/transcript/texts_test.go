package transcript

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A language_ is words or phrases to make texts of.
type language_ struct {
	name  string
	words []string
	dense bool // without spaces
	stop  string
}

var languages = func() []language_ {
	spaced := func(name, words, stop string) language_ { return language_{name, strings.Fields(words), false, stop} }
	dense := func(name, words, stop string) language_ { return language_{name, strings.Fields(words), true, stop} }
	english := spaced("English", "the function returns an error when you call it with nothing so I would check first and then write back what was there because users expect that file to change only once per request while this loop keeps reading until all data has been seen here is how we can fix your problem without breaking other parts of code", ".")
	return []language_{
		english, english, english, english,
		spaced("German", "die Funktion gibt einen Fehler zurück wenn man sie ohne Wert aufruft also würde ich zuerst prüfen und dann schreiben was für Größe das Übliche ist weil der Nutzer es so erwartet", "."),
		spaced("Spanish", "la función devuelve un error cuando se llama sin valor así que primero compruebo y después escribo lo que había porque el usuario espera que cambie señal año", "."),
		spaced("Russian", "функция возвращает ошибку если вызвать её без значения поэтому сначала проверим затем запишем то что было потому что пользователь ждёт этого", "."),
		spaced("Arabic", "الدالة تعيد خطأ عند استدعائها بدون قيمة لذلك سأتحقق أولا ثم أكتب ما كان هناك لأن المستخدم يتوقع ذلك", "."),
		spaced("Korean", "함수는 값이 없이 호출되면 오류를 반환하므로 먼저 확인하고 그 다음에 파일을 씁니다 사용자가 기대하는 결과입니다", "."),
		spaced("Hindi", "फ़ंक्शन बिना मान के बुलाने पर त्रुटि देता है इसलिए पहले जाँच करें फिर फ़ाइल लिखें क्योंकि उपयोगकर्ता यही चाहता है", "।"),
		dense("Chinese", "函数 在没有值时 返回错误 所以我们 首先检查 然后再写入 文件 因为用户 期望这样 代码 可以 修复 问题", "。"),
		dense("Japanese", "この関数は 値がない場合に エラーを返します ので まず確認して から ファイルを 書き込みます ユーザーは それを期待しています", "。"),
	}
}()

var (
	models    = []string{"composer-1", "gpt-5.1-codex", "claude-4.5-sonnet", "gemini-3-pro", "Claude 4.5 Sonnet"}
	toolNames = []string{"read_file", "grep", "run_terminal_cmd", "editFile", "list_dir", "web_search", "Shell"}
	filePaths = []string{"/home/me/project/main.go", "src/app/index.ts", "/tmp/data.json", "lib/parser.py", "/var/log/app.log"}
)

// text makes n sentences, at times with Markdown, code or emoji, at times a word.
func (m *maker) text(l language_, n int) string {
	if m.chance(0.06) {
		return m.short(l)
	}
	var b strings.Builder
	for i := range n {
		if i > 0 {
			switch {
			case m.chance(0.12):
				b.WriteString("\n\n```go\n" + m.code() + "```\n\n")
			case m.chance(0.12):
				b.WriteString("\n\n- ")
			case m.chance(0.06):
				b.WriteString("\n\n## ")
			case !l.dense:
				b.WriteString(" ")
			}
		}
		b.WriteString(m.sentence(l))
	}
	if m.chance(0.05) {
		b.WriteString(" 🎉")
	}
	return b.String()
}

func (m *maker) short(l language_) string {
	w := pick(m, l.words)
	if !l.dense {
		w = title(w)
	}
	return w + l.stop
}

func title(w string) string {
	r := []rune(w)
	return strings.ToUpper(string(r[:1])) + string(r[1:])
}

func (m *maker) sentence(l language_) string {
	words := make([]string, 3+m.r.IntN(14))
	for i := range words {
		words[i] = pick(m, l.words)
		if i > 1 && m.chance(0.05) {
			words[i] = "`" + pick(m, toolNames) + "`"
		}
	}
	if l.dense {
		return strings.Join(words, "") + l.stop
	}
	words[0] = title(words[0])
	if m.chance(0.3) {
		words[len(words)/2] += ","
	}
	return strings.Join(words, " ") + l.stop
}

func (m *maker) title(l language_) string {
	if l.dense {
		return pick(m, l.words) + pick(m, l.words)
	}
	return title(pick(m, l.words)) + " " + pick(m, l.words) + " " + pick(m, l.words)
}

func (m *maker) code() string {
	var b strings.Builder
	for range 2 + m.r.IntN(8) {
		fmt.Fprintf(&b, "\tx%d := f%d(a[%d], %q)\n", m.r.IntN(10), m.r.IntN(10), m.r.IntN(100), pick(m, toolNames))
	}
	return b.String()
}

// output is a line or two of a program.
func (m *maker) output() string {
	return pick(m, []string{
		fmt.Sprintf("ok  \tproject/part%d\t%d.%03ds\n", m.r.IntN(30), m.r.IntN(3), m.r.IntN(1000)),
		fmt.Sprintf("--- FAIL: TestThing%d (0.00s)\n    thing_test.go:%d: got %d, want %d\n", m.r.IntN(30), m.r.IntN(400), m.r.IntN(9), m.r.IntN(9)),
		fmt.Sprintf("drwxr-xr-x %d me me %d Nov %d 10:%02d part%d\n", m.r.IntN(9), m.r.IntN(9999), m.r.IntN(30), m.r.IntN(60), m.r.IntN(30)),
		fmt.Sprintf("main.go:%d:%d: undefined: thing%d\n", m.r.IntN(400), m.r.IntN(80), m.r.IntN(30)),
	})
}

func (m *maker) args() string {
	b, _ := json.Marshal(map[string]any{pick(m, []string{"path", "command", "query"}): pick(m, filePaths), "limit": m.r.IntN(100), "note": m.sentence(languages[0])})
	return string(b)
}

// schema makes JSON that is no call: a schema or settings, up to some KB.
func (m *maker) schema() string {
	props := make(map[string]any)
	for i := range 2 + m.r.IntN(30) {
		props[fmt.Sprintf("option_%d", i)] = map[string]any{"type": "string", "description": m.sentence(languages[0])}
	}
	b, _ := json.Marshal(map[string]any{"type": "object", "properties": props})
	return string(b)
}

func systemPrompt(m *maker) string {
	parts := []string{
		"You are a coding assistant that runs in a terminal.", "You must never mention the names of tools to the user.", "Always answer in the language of the user.",
		"Follow these instructions exactly.", "<rules>\nDo not edit files that you have not read.\n</rules>", "When the user asks a question, respond with a short answer.",
		"You have access to these tools.", "You should run the tests when you have changed code.",
	}
	m.r.Shuffle(len(parts)-1, func(i, j int) { parts[i+1], parts[j+1] = parts[j+1], parts[i+1] })
	return strings.Join(parts[:4+m.r.IntN(5)], "\n") + "\n" + strings.Repeat(m.sentence(languages[0])+"\n", m.r.IntN(10))
}

func toolAbout(m *maker) string {
	return "Reads or changes what the user's project has. " + m.sentence(languages[0])
}
