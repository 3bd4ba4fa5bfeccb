package transcript

import (
	"fmt"
	"strings"
)

// A tongue is whole sentences of a language, to make texts that no word list of
// the other generators has.
type tongue struct {
	name      string
	sentences []string
	thoughts  []string
	questions []string
	words     []string // answers of one word
	space     string
}

var tongues = []tongue{
	{"English", []string{
		"The cache is invalidated as soon as the user signs out.", "Rivers carry sediment down to the delta, where it settles.", "You can pass `--verbose` to see each step.",
		"Bread needs time more than it needs kneading.", "There are three ways to do this, and the second is the simplest.", "The test fails because the clock is read twice.",
		"I've updated the handler so that it returns early.", "In 1969 two people walked on the Moon.", "A mutex protects the map; without it the reads would race.",
		"This keeps memory flat even for very large inputs.", "Most of the time goes into parsing.", "Let me know if you would like me to add a test for that!", "**Note:** older versions behave differently.",
		"See https://example.org/docs/retry for the details.", "Its capital is Lisbon.", "Use a smaller batch, then measure again.", "That said, nothing here is urgent.",
	}, []string{
		"The user wants to know why this is slow.", "I should look at the file first.", "Maybe it is the lock, or maybe the disk.", "Let me consider the edge cases.", "Okay, so the question is about geography.",
		"Hmm, that would not compile.", "First I need to find where the value is set.", "I think a short reply is best here.",
	}, []string{
		"Why does my build take so long?", "what's the capital of Portugal", "Please refactor the login handler and add tests.", "fix the failing test in parser_test.go", "How do I bake bread without yeast?",
		"Explain mutexes to me as if I were five.", "Can you summarise the attached report?", "now do the same for the other file",
	}, []string{"Yes", "No.", "Lisbon", "42", "Done.", "Paris.", "true", "OK", "Tuesday", "3.14"}, " "},
	{"German", []string{
		"Der Zwischenspeicher wird beim Abmelden geleert.", "Für große Dateien lohnt sich das nicht.", "Brot braucht vor allem Zeit.", "Es gibt drei Wege, und der zweite ist der einfachste.", "Ich habe die Funktion angepasst.",
		"Der Test schlägt fehl, weil die Uhr zweimal gelesen wird.", "Das steht so in der Anleitung.", "Mit `make test` lässt es sich prüfen.",
	}, []string{"Der Nutzer fragt nach der Ursache.", "Ich sehe mir zuerst die Datei an.", "Vielleicht liegt es an der Sperre.", "Eine kurze Antwort genügt."}, []string{"Warum ist der Bau so langsam?", "Erkläre mir bitte Sperren.", "Und wie geht das auf Deutsch?"}, []string{"Ja.", "Nein", "Berlin", "Fertig."}, " "},
	{"French", []string{
		"Le cache est vidé dès que l'utilisateur se déconnecte.", "Le pain demande surtout du temps.", "Il y a trois façons de faire, la deuxième est la plus simple.", "J'ai modifié la fonction pour qu'elle s'arrête plus tôt.",
		"C'est ce que dit la documentation.", "Le test échoue parce que l'horloge est lue deux fois.", "La rivière dépose ses sédiments à l'embouchure.",
	}, []string{"L'utilisateur demande la cause.", "Je regarde d'abord le fichier.", "Une réponse brève suffit."}, []string{"Pourquoi est-ce si lent ?", "Explique-moi les verrous, s'il te plaît."}, []string{"Oui.", "Non", "Lyon"}, " "},
	{"Russian", []string{"Кэш очищается, когда пользователь выходит.", "Хлебу прежде всего нужно время.", "Есть три способа, и второй самый простой.", "Я исправил функцию.", "Тест падает, потому что часы читаются дважды."}, []string{"Пользователь спрашивает о причине.", "Сначала посмотрю файл."}, []string{"Почему сборка такая медленная?", "Объясни, что такое мьютекс."}, []string{"Да.", "Нет", "Москва"}, " "},
	{"Chinese", []string{"用户退出后，缓存会立即失效。", "做面包最需要的是时间。", "一共有三种方法，第二种最简单。", "我已经修改了这个函数。", "测试失败是因为时钟被读取了两次。", "详情请看文档。"}, []string{"用户想知道原因。", "我先看看文件。", "简短回答就好。"}, []string{"为什么构建这么慢？", "请解释一下互斥锁。"}, []string{"是的。", "北京", "不"}, ""},
	{"Japanese", []string{"ユーザーがログアウトするとキャッシュは無効になります。", "パンには時間が必要です。", "方法は三つあり、二番目が一番簡単です。", "関数を修正しました。", "時計が二回読まれるためテストは失敗します。"}, []string{"ユーザーは原因を知りたい。", "まずファイルを見よう。"}, []string{"なぜビルドが遅いのですか？", "ミューテックスを説明してください。"}, []string{"はい。", "東京", "いいえ"}, ""},
	{"Arabic", []string{"يتم مسح الذاكرة المؤقتة عند تسجيل الخروج.", "يحتاج الخبز إلى الوقت قبل كل شيء.", "هناك ثلاث طرق والثانية هي الأسهل.", "لقد عدلت الدالة.", "يفشل الاختبار لأن الساعة تُقرأ مرتين."}, []string{"يريد المستخدم معرفة السبب.", "سأنظر في الملف أولا."}, []string{"لماذا البناء بطيء جدا؟", "اشرح لي الأقفال."}, []string{"نعم.", "لا", "القاهرة"}, " "},
	{"Korean", []string{"사용자가 로그아웃하면 캐시가 비워집니다.", "빵에는 무엇보다 시간이 필요합니다.", "방법은 세 가지이고 두 번째가 가장 쉽습니다.", "함수를 고쳤습니다."}, []string{"사용자는 원인을 알고 싶어 한다.", "먼저 파일을 보자."}, []string{"빌드가 왜 이렇게 느린가요?"}, []string{"네.", "서울", "아니요"}, " "},
	{"Thai", []string{"แคชจะถูกล้างเมื่อผู้ใช้ออกจากระบบ", "ขนมปังต้องใช้เวลา", "มีสามวิธี และวิธีที่สองง่ายที่สุด", "ฉันแก้ไขฟังก์ชันแล้ว"}, []string{"ผู้ใช้อยากรู้สาเหตุ", "ดูไฟล์ก่อน"}, []string{"ทำไมการสร้างจึงช้า"}, []string{"ใช่", "กรุงเทพ"}, " "},
}

// speech is a tongue that prefers English.
func (m *maker) speech() *tongue {
	if m.chance(0.45) {
		return &tongues[0]
	}
	return &tongues[m.r.IntN(len(tongues))]
}

func (m *maker) say(t *tongue, from []string, n int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = pick(m, from)
	}
	return strings.Join(parts, t.space)
}

// reply is an answer of one of many forms.
func (m *maker) reply(t *tongue) string {
	n := 1 + m.r.IntN(9)
	switch m.r.IntN(16) {
	case 0, 1:
		return pick(m, t.words)
	case 2:
		return m.say(t, t.sentences, 1) + "\n\n```python\n" + m.python() + "```\n\n" + m.say(t, t.sentences, 2)
	case 3:
		return "```go\n" + m.code() + "```"
	case 4:
		var b strings.Builder
		b.WriteString("## " + strings.TrimRight(pick(m, t.sentences), ".!。") + "\n")
		for i := range 2 + m.r.IntN(5) {
			fmt.Fprintf(&b, "\n%d. %s", i+1, pick(m, t.sentences))
		}
		return b.String()
	case 5:
		return "| a | b |\n|---|---|\n| " + pick(m, t.words) + " | " + pick(m, t.sentences) + " |\n\n" + m.say(t, t.sentences, 1)
	case 6:
		return m.say(t, t.sentences, 2) + "\n\n" + m.say(&tongues[0], tongues[0].sentences, 2)
	case 7:
		return m.say(t, t.sentences, 30+m.r.IntN(40))
	}
	return m.say(t, t.sentences, n)
}

func (m *maker) python() string {
	var b strings.Builder
	for range 2 + m.r.IntN(6) {
		fmt.Fprintf(&b, "    value_%d = compute(%d, name=%q)  # step\n", m.r.IntN(9), m.r.IntN(100), pick(m, toolNames))
	}
	return "def run():\n" + b.String()
}

func (m *maker) thought(t *tongue) string { return m.say(t, t.thoughts, 1+m.r.IntN(6)) }

func (m *maker) question(t *tongue) string { return m.say(t, t.questions, 1) }

// snippet is a page or a file that a tool returns, often longer than an answer.
func (m *maker) snippet() string {
	t := m.speech()
	switch m.r.IntN(4) {
	case 0:
		return strings.Repeat(m.python(), 1+m.r.IntN(8))
	case 1:
		return "total " + fmt.Sprint(m.r.IntN(900)) + "\n" + strings.Repeat(m.output(), 1+m.r.IntN(20))
	}
	return m.say(t, t.sentences, 3+m.r.IntN(20))
}

func (m *maker) call() (name, args string) {
	name = pick(m, []string{"search_web", "open_file", "runCommand", "grep", "get_weather", "codebase_search", "fetch"})
	switch m.r.IntN(3) {
	case 0:
		args = fmt.Sprintf(`{"query":%q,"limit":%d}`, pick(m, tongues[0].questions), m.r.IntN(20))
	case 1:
		args = fmt.Sprintf(`{"path": %q}`, pick(m, []string{"src/server/handler.ts", "/srv/app/config.yaml", "docs/intro.md"}))
	default:
		args = fmt.Sprintf(`{"command":%q,"timeout":%d,"cwd":"/srv/app"}`, pick(m, []string{"go test ./...", "ls -la", "npm run build", "git status"}), m.r.IntN(9000))
	}
	return name, args
}
